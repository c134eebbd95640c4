# pyright: standard, reportMissingImports=false, reportAttributeAccessIssue=false
"""Event files for TensorBoard: `tensorboard --logdir runs` shows all runs side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outfox.core.extras import require
from outfox.core.protocols import TrackedRun


@dataclass(slots=True, kw_only=True)
class TensorBoard:
    """A resumed run adds a file to the same folder, which TensorBoard reads as one run."""

    dir: str | None = None
    """Default: `tensorboard` in the run folder; elsewhere, a folder by the run's name."""
    _writer: Any = field(init=False)

    def __post_init__(self) -> None:
        require("tensorboard", "the tracker tensorboard")

    def begin(self, run: TrackedRun) -> str:
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        place = Path(self.dir).expanduser() / run.name if self.dir else run.folder / "tensorboard"
        self._writer = EventFileWriter(str(place))
        return place.name

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        event = Event(wall_time=time.time(), step=step, summary=Summary(value=values))
        self._writer.add_event(event)
        self._writer.flush()

    def end(self, summary: Mapping[str, float] | None) -> None:
        if summary is not None:
            self.log(0, summary)
        self._writer.close()


part = TensorBoard
