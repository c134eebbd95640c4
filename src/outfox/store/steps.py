# pyright: standard
"""One set of scored groups on disk: a trajectory shard and a score shard beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from outfox.core.errors import DataError
from outfox.core.results import Score, ScoredGroup, TrajectoryCredit
from outfox.core.types import Group, Trajectory
from outfox.store import shards
from outfox.store.files import write_whole
from outfox.store.pieces import Pieces

Key = tuple[str, int]
"""(group_id, sibling)"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stored:
    """Scored groups as they were stored."""

    step: int
    groups: tuple[ScoredGroup, ...]
    credits: Mapping[Key, TrajectoryCredit]
    """Empty where none were stored."""
    pieces: Mapping[Key, list[list[str]]]
    """Text of each token, per ledger; empty where none were stored."""


def write_step(
    trajectory_file: Path,
    score_file: Path,
    step: int,
    groups: Sequence[ScoredGroup],
    credits: Sequence[Sequence[TrajectoryCredit]] | None,
    pieces: Pieces | None,
) -> list[list[float]]:
    """Write both shards, scores last. Returns the clock readings, which are in neither."""
    trajectories = [t for group in groups for t in group.group.trajectories]
    scores = [score for group in groups for score in group.scores]
    flat = [credit for group in credits for credit in group] if credits is not None else None
    table = shards.trajectory_table(step, trajectories, pieces)
    write_whole(trajectory_file, shards.to_bytes(table))
    write_whole(score_file, shards.to_bytes(shards.score_table(step, trajectories, scores, flat)))
    return shards.clock(trajectories)


def read_step(
    trajectory_file: Path, score_file: Path, clock: Sequence[Sequence[float]] | None
) -> Stored:
    """Raises DataError where a shard is missing or damaged, or a trajectory has no score."""
    table, scores = _read(trajectory_file), _read(score_file)
    scored = shards.scores(scores)
    members: dict[str, list[Trajectory]] = {}
    for trajectory in shards.trajectories(table, clock):
        members.setdefault(trajectory.group_id, []).append(trajectory)
    return Stored(
        step=step_of(trajectory_file),
        groups=tuple(_group(group_id, m, scored, score_file) for group_id, m in members.items()),
        credits=shards.credits(scores),
        pieces={
            (row["group_id"], row["sibling"]): row["pieces"]
            for row in table.select(["group_id", "sibling", "pieces"]).to_pylist()
            if row["pieces"] is not None
        },
    )


def step_of(trajectory_file: Path) -> int:
    """The step that a shard belongs to; -1 for a shard without rows."""
    column = _read(trajectory_file, ["step"]).column("step")
    return int(column[0].as_py()) if len(column) else -1


def _group(
    group_id: str, members: list[Trajectory], scored: Mapping[Key, Score], score_file: Path
) -> ScoredGroup:
    missing = [t.sibling for t in members if (group_id, t.sibling) not in scored]
    if missing:
        raise DataError(
            f"every stored trajectory has a score; {score_file} has none for group {group_id}, "
            f"siblings {missing}: the step was only half written; resume the run from before it"
        )
    return ScoredGroup(
        group=Group(group_id=group_id, trajectories=tuple(members)),
        scores=tuple(scored[group_id, t.sibling] for t in members),
    )


def _read(file: Path, columns: list[str] | None = None) -> pa.Table:
    try:
        return pq.read_table(file, columns=columns)
    except FileNotFoundError as error:
        raise DataError(f"no shard {file}: the run stores it when that step ends") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"a shard is a Parquet file; {file} cannot be read: {error}") from error
