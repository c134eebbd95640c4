"""One run on disk, `format: 1`. A crash at any instant leaves a folder that opens and resumes.

    run.yaml                                 resolved config, versions, seed, threads, file hashes
    metrics.jsonl  timings.jsonl             one line per step; every clock reading is in timings
    events.jsonl   summary.json              what happened besides; before and after
    trajectories/step-000042.parquet         what happened, token by token
    scores/<rubric-hash>/step-000042.parquet how good it was; joined by step, group_id, sibling
    evaluations/<name>/{trajectories,scores}.parquet
    checkpoints/step-000042/                 written by `learning/checkpoint.py`
    model/                                   of a run with LoRA: the merged model, at its end
    trackers.json                            written by `store/tracking.py`, where there are some
    run.lock                                 one writer at a time

Whole files are written under a temporary name and renamed; lines are appended whole. `rewind`
takes the folder back to the end of a step, which is how a resumed run begins.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import cast

from outfox.core.errors import ConfigError, DataError
from outfox.core.results import ScoredGroup, TrajectoryCredit
from outfox.core.types import JSON
from outfox.core.yaml import dump_yaml, load_yaml
from outfox.store.files import (
    append_line,
    append_lines,
    keep_lines,
    read_lines,
    write_json,
    write_whole,
)
from outfox.store.lock import exclusive
from outfox.store.pieces import Decode, pieces_by
from outfox.store.steps import Stored, read_step, step_of, write_step

FORMAT = 1
_STEP = re.compile(r"step-(\d{6,})")
_VERSIONED = ("outfox", "numpy", "torch", "transformers", "tokenizers", "safetensors", "pyarrow")
_LINES = ("metrics.jsonl", "timings.jsonl", "events.jsonl")

Credits = Sequence[Sequence[TrajectoryCredit]]
"""Per group, per trajectory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """A run folder. Reading needs no lock; hold `lock()` while writing."""

    path: Path
    about: Mapping[str, JSON]
    """What `run.yaml` says."""

    # -- opening ----------------------------------------------------------------------------------
    @classmethod
    def create(
        cls,
        path: Path | str,
        config: Mapping[str, JSON],
        *,
        threads: int = 1,
        processes: int = 1,
        files: Sequence[Path] = (),
        folders: Sequence[Path] = (),
    ) -> RunFolder:
        """Begin a run: `config` fully resolved, `files` the user's own, kept as content hashes.

        `folders`: where relative paths of the config were looked for, in order.

        Raises ConfigError where the folder holds a run (naming what differs) or other files.
        """
        folder = Path(path)
        if (folder / "run.yaml").exists():
            changed = differences(cls.open(folder).config, config)
            raise ConfigError(
                f"a run folder holds one run; {folder} holds one already"
                f"{' with other settings: ' + '; '.join(changed) if changed else ''}: "
                "resume it with --resume, or choose another run.dir"
            )
        # A run that died before its run.yaml was there left a part of it, and nothing else.
        leftovers = _leftovers(folder)
        if folder.exists() and (not folder.is_dir() or {*folder.iterdir()} - {*leftovers}):
            raise ConfigError(
                f"a run begins in an empty folder; {folder} holds something else: "
                "choose another run.dir"
            )
        about = {
            "format": FORMAT,
            "seed": config.get("seed"),
            **made_with(),
            "threads": threads,
            "processes": processes,
            "files": {str(file): _file_hash(file) for file in files},
            "folders": [str(folder.absolute()) for folder in folders],
            "config": dict(config),
        }
        for leftover in leftovers:
            _remove(leftover)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "run.yaml", dump_yaml(about))
        append_line(folder / "timings.jsonl", {"started": datetime.now(UTC).isoformat()})
        return cls(path=folder, about=about)

    @classmethod
    def open(cls, path: Path | str) -> RunFolder:
        """Raises DataError for a folder that is no run, is damaged, or is of a newer format."""
        folder = Path(path)
        file = folder / "run.yaml"
        if not file.is_file():
            found = "is no folder" if not folder.is_dir() else "has none"
            raise DataError(
                f"a run folder has a run.yaml; {folder} {found}: give the folder that "
                "`outfox train` named when it began"
            )
        try:
            loaded = load_yaml(file)
        except ConfigError as error:
            raise DataError(f"run.yaml is YAML; it is damaged: {error}") from error
        about = cast("dict[str, JSON]", loaded) if isinstance(loaded, dict) else {}
        version = about.get("format")
        if not isinstance(version, int) or version < 1:
            raise DataError(f"run.yaml begins with `format: {FORMAT}`; {file} has {version!r}")
        if version > FORMAT:
            raise DataError(
                f"this Outfox reads run folders up to format {FORMAT}; {folder} is of format "
                f"{version}: install a newer Outfox to open it"
            )
        return cls(path=folder, about=about)

    def lock(self) -> AbstractContextManager[None]:
        """Raises DataError on entry where another process is writing this folder."""
        return exclusive(self.path)

    @property
    def config(self) -> Mapping[str, JSON]:
        """The fully resolved recipe."""
        return self.about["config"]

    # -- lines ------------------------------------------------------------------------------------
    def add_metrics(
        self, step: int, metrics: Mapping[str, JSON], *, stage: str = "reinforce"
    ) -> None:
        """One line, free of clock readings; what is not finite is stored as null."""
        append_line(self.path / "metrics.jsonl", {"step": step, "stage": stage, **metrics})

    def add_timings(
        self, step: int, seconds: Mapping[str, JSON], *, stage: str = "reinforce"
    ) -> None:
        append_line(self.path / "timings.jsonl", {"step": step, "stage": stage, **seconds})

    def add_stage(
        self,
        stage: str,
        metrics: Sequence[Mapping[str, JSON]],
        seconds: Sequence[Mapping[str, JSON]] = (),
    ) -> None:
        """Metrics and timings of all steps of a stage, from step 0, flushed together."""
        for name, rows in (("metrics.jsonl", metrics), ("timings.jsonl", seconds)):
            lines = [{"step": step, "stage": stage, **row} for step, row in enumerate(rows)]
            append_lines(self.path / name, lines)

    def add_event(self, name: str, *, step: int | None = None, **details: JSON) -> None:
        append_line(self.path / "events.jsonl", {"step": step, "event": name, **details})

    def metrics(self) -> list[dict[str, JSON]]:
        return read_lines(self.path / "metrics.jsonl")

    def timings(self) -> list[dict[str, JSON]]:
        """Seconds by part of each step."""
        rows = read_lines(self.path / "timings.jsonl")
        return [row for row in rows if "step" in row and "clock" not in row]

    def events(self) -> list[dict[str, JSON]]:
        return read_lines(self.path / "events.jsonl")

    # -- trajectories and scores ------------------------------------------------------------------
    def add_groups(
        self,
        step: int,
        groups: Sequence[ScoredGroup],
        *,
        rubric: str,
        credits: Credits | None = None,
        decode: Decode | None = None,
    ) -> None:
        """Store one training step. `rubric`: its hash; `decode`: also store each token's text."""
        pieces = pieces_by(decode) if decode else None
        times = write_step(
            self._trajectory_file(step),
            self._score_file(rubric, step),
            step,
            groups,
            credits,
            pieces,
        )
        append_line(self.path / "timings.jsonl", {"step": step, "clock": times})

    def groups(self, step: int, *, rubric: str | None = None) -> tuple[ScoredGroup, ...]:
        """What `add_groups` stored. `rubric` may be left out where only one scored the run."""
        clocks = [
            row["clock"]
            for row in read_lines(self.path / "timings.jsonl")
            if row.get("step") == step and "clock" in row
        ]
        file = self._score_file(rubric or self._only_rubric(), step)
        return read_step(self._trajectory_file(step), file, clocks[-1] if clocks else None).groups

    def steps(self) -> list[int]:
        """Steps whose trajectories are stored, in order."""
        return sorted(step for step, _ in _numbered(self.path / "trajectories"))

    def rubrics(self) -> list[str]:
        """Hashes of the rubrics that scored this run."""
        folder = self.path / "scores"
        return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []

    def add_evaluation(
        self,
        name: str,
        step: int,
        groups: Sequence[ScoredGroup],
        *,
        credits: Credits | None = None,
        decode: Decode | None = None,
    ) -> None:
        """Store held-out episodes under a name (`before`, `after`, ...), replacing earlier ones.

        `step`: the last step that the policy was trained in, -1 before the first.
        """
        folder = self.path / "evaluations" / name
        pieces = pieces_by(decode) if decode else None
        write_step(
            folder / "trajectories.parquet",
            folder / "scores.parquet",
            step,
            groups,
            credits,
            pieces,
        )

    def evaluations(self) -> list[str]:
        """Names of the finished evaluations."""
        folder = self.path / "evaluations"
        return sorted(file.parent.name for file in folder.glob("*/scores.parquet"))

    def evaluation(self, name: str) -> Stored:
        """Raises DataError where there is no such evaluation."""
        folder = self.path / "evaluations" / name
        return read_step(folder / "trajectories.parquet", folder / "scores.parquet", None)

    # -- the rest ---------------------------------------------------------------------------------
    def write_summary(self, summary: Mapping[str, JSON]) -> None:
        write_json(self.path / "summary.json", summary)

    def summary(self) -> dict[str, JSON]:
        """Empty where none was written yet."""
        file = self.path / "summary.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}

    def checkpoint(self, step: int) -> Path:
        """Where the checkpoint of a step belongs."""
        return self.path / "checkpoints" / f"step-{step:06d}"

    def checkpoints(self) -> list[int]:
        """Steps with a checkpoint, in order."""
        return sorted(step for step, _ in _numbered(self.path / "checkpoints"))

    def keep_checkpoints(self, count: int) -> None:
        """Remove all but the newest `count`."""
        for step in self.checkpoints()[:-count]:
            _remove(self.checkpoint(step))

    def rewind(self, step: int) -> None:
        """Drop every reinforcement step after `step`, and what a crash left half-written.

        Lines of other stages (a cold start) stay, and evaluations before the first step, unless
        `step` is -1: then the run begins anew. Lines without stage and step stay.
        """
        for name in _LINES:
            keep_lines(self.path / name, lambda row: _at_most(row, step))
        scored = [self.path / "scores" / rubric for rubric in self.rubrics()]
        for folder in (self.path / "trajectories", self.path / "checkpoints", *scored):
            for number, entry in list(_numbered(folder)):
                if number > step:
                    _remove(entry)
        self._rewind_evaluations(step)
        for leftover in _leftovers(self.path):
            _remove(leftover)

    def _rewind_evaluations(self, step: int) -> None:
        folder, finished = self.path / "evaluations", set(self.evaluations())
        names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
        late = {
            name
            for name in names
            if name not in finished
            or step < 0
            or step_of(folder / name / "trajectories.parquet") > step
        }
        for name in late:
            _remove(folder / name)
        whole = finished - late
        keep_lines(self.path / "events.jsonl", lambda row: row.get("of", "") in {"", *whole})
        summary = self.summary()
        if late & set(summary):
            self.write_summary({k: v for k, v in summary.items() if k not in late})

    def _trajectory_file(self, step: int) -> Path:
        return self.path / "trajectories" / f"step-{step:06d}.parquet"

    def _score_file(self, rubric: str, step: int) -> Path:
        return self.path / "scores" / rubric / f"step-{step:06d}.parquet"

    def _only_rubric(self) -> str:
        found = self.rubrics()
        if len(found) != 1:
            raise DataError(
                f"the rubric may be left out where one scored the run; {self.path} has "
                f"{', '.join(found) or 'none'}: name one by its hash"
            )
        return found[0]


def content_hash(value: JSON) -> str:
    """Sixteen hex digits that change with the content, e.g. of a rubric's resolved tree."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _at_most(row: Mapping[str, JSON], limit: int) -> bool:
    step = row.get("step")
    if limit < 0:
        return step is None and "stage" not in row
    return row.get("stage", "reinforce") != "reinforce" or step is None or step <= limit


def _numbered(folder: Path) -> Iterator[tuple[int, Path]]:
    for entry in folder.iterdir() if folder.is_dir() else ():
        match = _STEP.fullmatch(entry.name.removesuffix(".parquet"))
        if match:
            yield int(match[1]), entry


def _leftovers(folder: Path) -> list[Path]:
    """What a crash left half-written: files and folders under a temporary name."""
    found = [entry for end in ("tmp", "old") for entry in folder.rglob(f".*.{end}")]
    return [entry for entry in found if not {*entry.parents} & {*found}]


def _remove(entry: Path) -> None:
    if entry.is_dir():
        shutil.rmtree(entry)
    else:
        entry.unlink()


def made_with() -> dict[str, JSON]:
    """What the bits of a run depend on besides its settings: versions and the kind of machine."""
    return {
        "versions": {"python": platform.python_version(), **_versions()},
        "machine": {"system": platform.system(), "type": platform.machine()},
    }


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _VERSIONED:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _file_hash(file: Path) -> str:
    return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()


def differences(old: Mapping[str, JSON], new: Mapping[str, JSON], at: str = "") -> list[str]:
    """`key: old -> new` for every setting of two configs that differs."""
    found: list[str] = []
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            inner = cast("tuple[Mapping[str, JSON], Mapping[str, JSON]]", (before, after))
            found += differences(*inner, f"{at}{key}.")
        elif before != after:
            found.append(f"{at}{key}: {before!r} -> {after!r}")
    return found
