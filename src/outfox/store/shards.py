# pyright: standard
"""Trajectories and scores as Parquet, one file per step, exact both ways.

    Trajectory  ⇄  one row: plain columns to query │ exact columns to rebuild
    Score       ⇄  one row, joined by (step, group_id, sibling)

The plain columns (`task_id`, `kind`, `stop_reason`, `answer`, `calls`, `policy_tokens`, `total`,
`outcome`, ...) are derived and never read back. Exact columns: `ledgers` and `completions` (ids as
int64, logprobs as float32), and `task`, `turn_list`, `final_state`, `results`, `parts` as JSON.
Clock readings are kept out, so that two equal runs write equal bytes; `clock` returns them for
`timings.jsonl`, and `trajectories` takes them back.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from outfox.core.ledger import Completion, Ledger, Segment, Span
from outfox.core.results import (
    SIGNAL_FAILED,
    NotApplicable,
    Score,
    SignalResult,
    TrajectoryCredit,
    Value,
)
from outfox.core.types import CALL_FAILED, Task, ToolResult, Trajectory, Turn
from outfox.store.payload import dumps, from_json, readable, to_json
from outfox.store.pieces import Pieces

_IDS, _LOGPROBS = pa.list_(pa.int64()), pa.list_(pa.float32())
_SPANS = pa.list_(pa.struct({"name": pa.string(), "start": pa.int64(), "end": pa.int64()}))
_SEGMENT = pa.struct(
    {
        "owner": pa.string(),
        "token_ids": _IDS,
        "logprobs": _LOGPROBS,
        "policy_version": pa.int64(),
        "spans": _SPANS,
    }
)
_COMPLETION = pa.struct(
    {
        "turn": pa.int32(),
        "token_ids": _IDS,
        "logprobs": _LOGPROBS,
        "policy_version": pa.int64(),
        "finish_reason": pa.string(),
        "stop": pa.string(),
    }
)
_KEY = {"step": pa.int64(), "group_id": pa.string(), "sibling": pa.int32()}
TRAJECTORY_SCHEMA = pa.schema(
    {
        **_KEY,
        "task_id": pa.string(),
        "kind": pa.string(),
        "solvable": pa.string(),
        "question": pa.string(),
        "stop_reason": pa.string(),
        "error": pa.string(),
        "answer": pa.string(),
        "calls": pa.int32(),
        "turns": pa.int32(),
        "document_ids": pa.list_(pa.string()),
        "failed_calls": pa.int32(),
        "flags": pa.list_(pa.string()),
        "policy_tokens": pa.int64(),
        "text": pa.string(),
        "task": pa.string(),
        "turn_list": pa.string(),
        "completions": pa.list_(_COMPLETION),
        "ledgers": pa.list_(pa.struct({"agent": pa.string(), "segments": pa.list_(_SEGMENT)})),
        "final_state": pa.string(),
        "pieces": pa.list_(pa.list_(pa.string())),
    }
)
SCORE_SCHEMA = pa.schema(
    {
        **_KEY,
        "task_id": pa.string(),
        "total": pa.float64(),
        "outcome": pa.string(),
        "gate": pa.string(),
        "results": pa.string(),
        "parts": pa.string(),
        "left_out": pa.string(),
        "advantages": pa.list_(_LOGPROBS),
    }
)
_RESULTS: Mapping[str, type[SignalResult]] = {
    kind.__name__: kind for kind in (Value, NotApplicable, *SIGNAL_FAILED)
}


def to_bytes(table: pa.Table) -> bytes:
    """The table as one compressed Parquet file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


# -- trajectories ---------------------------------------------------------------------------------
def trajectory_table(
    step: int, trajectories: Sequence[Trajectory], pieces: Pieces | None = None
) -> pa.Table:
    """One row per trajectory, in order; with `pieces`, each token's text beside its id."""
    rows = [
        _plain_columns(step, trajectory)
        | _exact_columns(trajectory)
        | {"pieces": [pieces.of(ledger) for ledger in trajectory.ledgers] if pieces else None}
        for trajectory in trajectories
    ]
    return pa.Table.from_pylist(rows, schema=TRAJECTORY_SCHEMA)


def _plain_columns(step: int, trajectory: Trajectory) -> dict[str, object]:
    metadata = trajectory.task.metadata
    kind, solvable = metadata.get("kind"), metadata.get("solvable")
    question = metadata.get("question") or trajectory.task.prompt[-1].content
    return {
        "step": step,
        "group_id": trajectory.group_id,
        "sibling": trajectory.sibling,
        "task_id": trajectory.task.task_id,
        "kind": kind if isinstance(kind, str) else None,
        "solvable": solvable if isinstance(solvable, str) else None,
        "question": readable(str(question)),
        "stop_reason": trajectory.stop_reason,
        "error": readable(trajectory.error),
        "answer": readable(trajectory.answer),
        "calls": len(trajectory.calls),
        "turns": len(trajectory.turns),
        "document_ids": [readable(document.id) for document in trajectory.documents],
        "failed_calls": sum(r.status in CALL_FAILED for r in trajectory.results),
        "flags": sorted(trajectory.flags),
        "policy_tokens": trajectory.policy_tokens,
        "text": readable(trajectory.policy_text),
    }


def _exact_columns(trajectory: Trajectory) -> dict[str, object]:
    turns = [_without_clock(dataclasses.replace(t, completions=())) for t in trajectory.turns]
    exact_error = None if readable(trajectory.error) == trajectory.error else trajectory.error
    return {
        "task": dumps(to_json(trajectory.task)),
        "turn_list": dumps(to_json(turns)),
        "completions": [
            _completion_row(index, completion)
            for index, turn in enumerate(trajectory.turns)
            for completion in turn.completions
        ],
        "ledgers": [
            {"agent": ledger.agent, "segments": [_segment_row(s) for s in ledger.segments]}
            for ledger in trajectory.ledgers
        ],
        "final_state": dumps({"state": to_json(trajectory.final_state), "error": exact_error}),
    }


def _completion_row(turn: int, completion: Completion) -> dict[str, object]:
    return {
        "turn": turn,
        "token_ids": completion.token_ids,
        "logprobs": completion.logprobs,
        "policy_version": completion.policy_version,
        "finish_reason": completion.finish_reason,
        "stop": completion.stop,
    }


def _segment_row(segment: Segment) -> dict[str, object]:
    return {
        "owner": segment.owner,
        "token_ids": segment.token_ids,
        "logprobs": segment.logprobs,
        "policy_version": segment.policy_version,
        "spans": [{"name": s.name, "start": s.start, "end": s.end} for s in segment.spans],
    }


def trajectories(
    table: pa.Table, clock: Sequence[Sequence[float]] | None = None
) -> list[Trajectory]:
    """The trajectories that `trajectory_table` was given, with clock readings where passed."""
    rows = table.to_pylist()
    found = [_trajectory(row) for row in rows]
    return (
        [_with_clock(t, times) for t, times in zip(found, clock, strict=True)] if clock else found
    )


def _trajectory(row: Mapping) -> Trajectory:
    completions: dict[int, list[Completion]] = {}
    for entry in row["completions"]:
        completions.setdefault(entry.pop("turn"), []).append(_completion(entry))
    turns = [from_json(Turn, data) for data in json.loads(row["turn_list"])]
    final = json.loads(row["final_state"])
    return Trajectory(
        task=from_json(Task, json.loads(row["task"])),
        group_id=row["group_id"],
        sibling=row["sibling"],
        turns=tuple(
            dataclasses.replace(turn, completions=tuple(completions.get(index, ())))
            for index, turn in enumerate(turns)
        ),
        stop_reason=row["stop_reason"],
        ledgers=tuple(
            Ledger(agent=data["agent"], segments=tuple(_segment(s) for s in data["segments"]))
            for data in row["ledgers"]
        ),
        final_state=final["state"],
        error=final["error"] if final["error"] is not None else row["error"],
    )


def _completion(entry: dict) -> Completion:
    entry["token_ids"] = np.asarray(entry["token_ids"], np.int64)
    entry["logprobs"] = np.asarray(entry["logprobs"], np.float32)
    return Completion(**entry)


def _segment(entry: dict) -> Segment:
    logprobs = entry["logprobs"]
    return Segment(
        owner=entry["owner"],
        token_ids=np.asarray(entry["token_ids"], np.int64),
        logprobs=None if logprobs is None else np.asarray(logprobs, np.float32),
        policy_version=entry["policy_version"],
        spans=tuple(Span(**span) for span in entry["spans"]),
    )


# -- clock readings -------------------------------------------------------------------------------
def clock(trajectories: Sequence[Trajectory]) -> list[list[float]]:
    """Per trajectory: seconds of its completions, then of its tool results, in order."""
    return [
        [c.seconds for turn in t.turns for c in turn.completions] + [r.seconds for r in t.results]
        for t in trajectories
    ]


def _without_clock(turn: Turn) -> Turn:
    return _timed(turn, [0.0] * len(turn.observation.results) if turn.observation else [])


def _timed(turn: Turn, seconds: Sequence[float]) -> Turn:
    if turn.observation is None:
        return turn
    results: list[ToolResult] = [
        dataclasses.replace(result, seconds=value)
        for result, value in zip(turn.observation.results, seconds, strict=True)
    ]
    return dataclasses.replace(
        turn, observation=dataclasses.replace(turn.observation, results=tuple(results))
    )


def _with_clock(trajectory: Trajectory, seconds: Sequence[float]) -> Trajectory:
    completion_count = sum(len(turn.completions) for turn in trajectory.turns)
    engine, tools = iter(seconds[:completion_count]), iter(seconds[completion_count:])
    turns: list[Turn] = []
    for turn in trajectory.turns:
        completions = tuple(dataclasses.replace(c, seconds=next(engine)) for c in turn.completions)
        results = turn.observation.results if turn.observation else ()
        turns.append(
            _timed(
                dataclasses.replace(turn, completions=completions), [next(tools) for _ in results]
            )
        )
    return dataclasses.replace(trajectory, turns=tuple(turns))


# -- scores ---------------------------------------------------------------------------------------
def score_table(
    step: int,
    trajectories: Sequence[Trajectory],
    scores: Sequence[Score],
    credits: Sequence[TrajectoryCredit] | None = None,
) -> pa.Table:
    """One row per trajectory; with `credits`, each token's advantage per ledger."""
    rows = [
        {
            "step": step,
            "group_id": trajectory.group_id,
            "sibling": trajectory.sibling,
            "task_id": trajectory.task.task_id,
            "total": score.total,
            "outcome": score.outcome,
            "gate": score.gate,
            "results": dumps(
                {
                    name: {"type": type(result).__name__, **to_json(result)}
                    for name, result in score.results.items()
                }
            ),
            "parts": dumps(dict(score.parts)),
            "left_out": credits[index].left_out if credits else None,
            "advantages": list(credits[index].advantages) if credits else None,
        }
        for index, (trajectory, score) in enumerate(zip(trajectories, scores, strict=True))
    ]
    return pa.Table.from_pylist(rows, schema=SCORE_SCHEMA)


def scores(table: pa.Table) -> dict[tuple[str, int], Score]:
    """Scores by (group_id, sibling)."""
    return {
        (row["group_id"], row["sibling"]): Score(
            total=row["total"],
            outcome=row["outcome"],
            gate=row["gate"],
            results={name: _result(data) for name, data in json.loads(row["results"]).items()},
            parts=json.loads(row["parts"]),
        )
        for row in table.to_pylist()
    }


def _result(data: dict) -> SignalResult:
    return from_json(_RESULTS[data.pop("type")], data)


def credits(table: pa.Table) -> dict[tuple[str, int], TrajectoryCredit]:
    """Credits by (group_id, sibling), where they were stored."""
    return {
        (row["group_id"], row["sibling"]): TrajectoryCredit(
            advantages=tuple(np.asarray(a, np.float32) for a in row["advantages"]),
            left_out=row["left_out"],
        )
        for row in table.to_pylist()
        if row["advantages"] is not None
    }
