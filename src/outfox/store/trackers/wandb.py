# pyright: standard, reportMissingImports=false, reportAttributeAccessIssue=false
"""Weights & Biases. `mode: offline` needs no account: `wandb sync` sends the folder later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

import wandb

from outfox.core.protocols import TrackedRun


@dataclass(slots=True, kw_only=True)
class WandB:
    """A resumed run goes on under its id; offline, in a second folder with the same id. What a kill
    interrupts may lack the last steps, for W&B writes its file every few seconds."""

    project: str = "outfox"
    """Project there."""
    entity: str | None = None
    """User or team; default: that of the account."""
    group: str | None = None
    """Shows runs together, seeds of one variant for instance."""
    tags: tuple[str, ...] = ()
    """Of the run."""
    mode: Literal["online", "offline", "disabled"] | None = None
    """None: what `WANDB_MODE` or `wandb offline` says, else online."""
    dir: str | None = None
    """Folder of the local files; default: the run folder."""
    samples: bool = True
    """Show a few episodes as text."""
    _run: wandb.Run = field(init=False)

    def begin(self, run: TrackedRun) -> str:
        self._run = wandb.init(
            project=self.project,
            entity=self.entity,
            group=self.group,
            tags=list(self.tags),
            mode=self.mode,
            dir=self.dir or str(run.folder),
            name=run.name,
            id=run.id,
            resume="allow" if run.id else None,
            config=dict(run.config),
            reinit="create_new",
            settings=wandb.Settings(console="off", silent=True, save_code=False),
        )
        return str(self._run.id)

    def log(self, step: int, metrics: Mapping[str, float], samples: Sequence[str]) -> None:
        shown = samples if self.samples else ()
        pages = {f"samples/{number}": _page(sample) for number, sample in enumerate(shown)}
        self._run.log({**metrics, **pages}, step=step, commit=True)

    def end(self, summary: Mapping[str, float] | None) -> None:
        self._run.summary.update(dict(summary or {}))
        self._run.finish(exit_code=0 if summary is not None else 1)


def _page(text: str) -> wandb.Html:
    return wandb.Html(f'<pre style="white-space: pre-wrap">{escape(text)}</pre>')


part = WandB
