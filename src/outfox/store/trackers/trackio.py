# pyright: standard, reportMissingImports=false, reportAttributeAccessIssue=false
"""Trackio: a local dashboard (`trackio show`), a Hugging Face Space, or a server of one's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from outfox.core.extras import require
from outfox.core.protocols import TrackedRun


@dataclass(slots=True, kw_only=True)
class Trackio:
    """A run goes on by its name there, so the name gets an ending that no other has."""

    project: str = "outfox"
    group: str | None = None
    space: str | None = None
    """A Hugging Face Space, `user/name`; default: files on this machine (`TRACKIO_DIR`)."""
    server: str | None = None
    """URL of a server of one's own."""
    _run: Any = field(init=False)

    def __post_init__(self) -> None:
        require("trackio", "the tracker trackio")

    def begin(self, run: TrackedRun) -> str:
        import trackio

        with redirect_stdout(sys.stderr):
            self._run = trackio.init(
                project=self.project,
                group=self.group,
                space_id=self.space,
                server_url=self.server,
                name=run.id or f"{run.name}-{uuid4().hex[:6]}",
                resume="allow" if run.id else "never",
                config=dict(run.config),
                embed=False,
            )
        return str(self._run.name)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def end(self, summary: Mapping[str, float] | None) -> None:
        if summary is not None:
            self._run.log(dict(summary))
        with redirect_stdout(sys.stderr):
            self._run.finish()


part = Trackio
