# pyright: standard, reportMissingImports=false, reportAttributeAccessIssue=false
"""Trackio: a local dashboard (`trackio show`), a Hugging Face Space, or a server of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import trackio

from outfox.core.protocols import TrackedRun


@dataclass(slots=True, kw_only=True)
class Trackio:
    """A run goes on by its name there, so the name gets an ending that no other has."""

    project: str = "outfox"
    """Project there."""
    group: str | None = None
    """Shows runs together, seeds of one variant for instance."""
    space: str | None = None
    """A Hugging Face Space, `user/name`; default: files on this machine (`TRACKIO_DIR`)."""
    server: str | None = None
    """URL of a server of one's own."""
    samples: bool = True
    """Show a few episodes as text."""
    _run: trackio.Run = field(init=False)

    def begin(self, run: TrackedRun) -> str:
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

    def log(self, step: int, metrics: Mapping[str, float], samples: Sequence[str]) -> None:
        table = [[sample] for sample in samples if self.samples]
        shown = {"samples": trackio.Table(columns=["episode"], data=table)} if table else {}
        self._run.log({**metrics, **shown}, step=step)

    def end(self, summary: Mapping[str, float] | None) -> None:
        if summary:
            self._run.log(dict(summary))
        self._run.finish()


part = Trackio
