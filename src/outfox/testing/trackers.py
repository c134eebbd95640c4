"""A tracker that remembers, and what every tracker must do.

check_tracker(lambda: WandB(mode="offline"), folder)      raises ContractError at a broken rule
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from outfox.core.errors import ContractError
from outfox.core.protocols import TrackedRun, Tracker

Row = tuple[int, dict[str, float]]
SAMPLE = "user: Where does the *river* <Ur> rise?\npolicy: 在源头。\nreward: 1.000 (right)"


@dataclass(slots=True)
class FakeTracker:
    """Keeps what it is shown; raises ConnectionError from step `fails_at` on."""

    fails_at: int | None = None
    runs: list[TrackedRun] = field(default_factory=list[TrackedRun])
    rows: list[Row] = field(default_factory=list[Row])
    samples: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    """Step to episodes, of the steps that had some."""
    summaries: list[Mapping[str, float] | None] = field(
        default_factory=list["Mapping[str, float] | None"]
    )

    def begin(self, run: TrackedRun) -> str:
        self.runs.append(run)
        return run.id or f"fake-{len(self.runs)}"

    def log(self, step: int, metrics: Mapping[str, float], samples: Sequence[str]) -> None:
        if self.fails_at is not None and step >= self.fails_at:
            raise ConnectionError(f"no way to hand over step {step}")
        self.rows.append((step, dict(metrics)))
        if samples:
            self.samples[step] = tuple(samples)

    def end(self, summary: Mapping[str, float] | None) -> None:
        self.summaries.append(summary)


def check_tracker(make: Callable[[], Tracker], folder: Path) -> str:
    """Logs steps 0 to 2, the first with a sample, stops, goes on with another object of the same
    settings, and ends.

    Returns the run's id there. Raises ContractError: the id is no text, or changes on going on.
    """
    config = {"name": "check", "steps": 5, "world": {"type": "rows", "top_k": 3}, "tools": ["a"]}
    run = TrackedRun(name=folder.name, folder=folder, config=config)
    found = _follow(make(), run, range(3), None)
    again = TrackedRun(name=run.name, folder=folder, config=config, id=found)
    kept = _follow(make(), again, range(3, 5), {"before/accuracy": 0.25, "after/accuracy": 0.5})
    if kept != found:
        raise ContractError(
            f"a tracker goes on under the id that it gave; {found!r}, then {kept!r}"
        )
    return found


def _follow(
    tracker: Tracker, run: TrackedRun, steps: range, summary: Mapping[str, float] | None
) -> str:
    found = tracker.begin(run)
    if not found or not isinstance(found, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ContractError(f"`begin` returns the run's id as a text; {found!r} is none")
    for step in steps:
        metrics = {"reward": step / 4, "rewards/path.py:own/mean": float(step)}
        tracker.log(step, metrics, [SAMPLE] if step == 0 else [])
    tracker.end(summary)
    return found
