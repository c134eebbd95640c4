# pyright: standard, reportMissingImports=false, reportAttributeAccessIssue=false
"""Event files for TensorBoard: `tensorboard --logdir runs` shows all runs side by side."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from outfox.core.protocols import TrackedRun


@dataclass(slots=True, kw_only=True)
class TensorBoard:
    """A resumed run adds a file to the same folder, which TensorBoard reads as one run."""

    dir: str | None = None
    """Default: `tensorboard` in the run folder; elsewhere, a folder by the run's name."""
    samples: bool = True
    """Show a few episodes as text."""
    _writer: EventFileWriter = field(init=False)

    def begin(self, run: TrackedRun) -> str:
        place = Path(self.dir).expanduser() / run.name if self.dir else run.folder / "tensorboard"
        self._writer = EventFileWriter(str(place))
        if run.id is None:
            self._add(0, _text("config", json.dumps(run.config, indent=2, ensure_ascii=False)))
        return str(place)

    def log(self, step: int, metrics: Mapping[str, float], samples: Sequence[str]) -> None:
        self._add(step, _scalars(metrics))
        if self.samples:
            for number, sample in enumerate(samples):
                self._add(step, _text(f"samples/{number}", sample))
        self._writer.flush()

    def end(self, summary: Mapping[str, float] | None) -> None:
        self._add(0, _scalars(summary or {}))
        self._writer.close()

    def _add(self, step: int, summary: Summary) -> None:
        self._writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))


def _scalars(values: Mapping[str, float]) -> Summary:
    return Summary(value=[Summary.Value(tag=k, simple_value=v) for k, v in values.items()])


def _text(name: str, text: str) -> Summary:
    """TensorBoard reads Markdown; an indented block is shown as it stands."""
    return text_pb(name, "".join(f"    {line}\n" for line in text.splitlines()))


part = TensorBoard
