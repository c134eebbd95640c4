"""What a person sees while a run goes on: bars with an ETA, a line per step, a closing table."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from outfox.evaluation.intervals import Estimate
from outfox.evaluation.metrics import KindMeasures, Measures
from outfox.evaluation.summary import short

_LOGGER = "outfox"
LINE_EVERY = 5
"""Steps between lines where the output is no terminal."""
_WHERE_MEASURED = frozenset(
    {
        "conflicts verified",
        "right after a failed call",
        "other query after a failure",
        "poison followed",
    }
)
"""Rows that a world without noise or conflicts goes without."""


class Bar:
    """One bar; `advance` may change the text beside it."""

    def __init__(self, progress: Progress, name: str, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=total, text="")
        self._total = total

    def to(self, done: int, text: str = "") -> None:
        self._progress.update(self._task, completed=done, text=text)
        due = done % LINE_EVERY == 0 or done == self._total
        if text and due and not self._progress.console.is_terminal:
            self._progress.console.print(f"  {done}/{self._total}  {text}")


class Display:
    """Everything goes to stderr, so that `--json` leaves stdout to the summary."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)

    @contextmanager
    def warnings(self) -> Generator[None]:
        """Show what Outfox logs, each kind of warning once: it comes back with every step."""
        handler = _Warnings(self)
        logger = logging.getLogger(_LOGGER)
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)

    @contextmanager
    def bar(self, name: str, total: int) -> Generator[Bar]:
        columns = (
            TextColumn("{task.description:<22}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[text]}"),
        )
        if not self.console.is_terminal:
            self.say(name)
        progress = Progress(*columns, console=self.console, disable=not self.console.is_terminal)
        with progress:
            yield Bar(progress, name, total)

    def compare(self, before: Measures | None, after: Measures) -> None:
        """Before and after: the headline measures, then accuracy and searches by kind."""
        self.console.print(_headline(before, after))
        self.console.print(_by_kind(before.by_kind if before else {}, after.by_kind))
        self.console.print(_by_signal(before.by_signal if before else {}, after.by_signal))


class _Warnings(logging.Handler):
    """Says a record's message unless one of the same wording was said already."""

    def __init__(self, display: Display) -> None:
        super().__init__(logging.WARNING)
        self._display = display
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg not in self._said:
            self._said.add(record.msg)
            self._display.say(f"warning: {record.getMessage()}")


def _headline(before: Measures | None, after: Measures) -> Table:
    table = plain_table(f"{after.questions} held-out questions", "", "before", "after", "95 %")
    then = _measures(before) if before else {}
    for name, now in _measures(after).items():
        earlier = then[name].value if then else None
        if name not in _WHERE_MEASURED or (earlier, now.value) != (None, None):
            table.add_row(name, short(earlier), short(now.value), _span(now))
    return table


def _measures(of: Measures) -> dict[str, Estimate]:
    return {
        "accuracy": of.accuracy,
        "over-search": of.over_search,
        "under-search": of.under_search,
        "J": of.j,
        "abstains rightly": of.abstain_right,
        "abstains falsely": of.abstain_false,
        "wrong, not abstained": of.wrong,
        "closed-book recall": of.closed_book_recall,
        "searches": of.calls,
        "tokens per right answer": of.tokens_per_correct,
        "conflicts verified": of.verified_conflict,
        "right after a failed call": of.recovery,
        "other query after a failure": of.changed_queries,
        "poison followed": of.followed_poison,
    }


def _by_kind(before: Mapping[str, KindMeasures], after: Mapping[str, KindMeasures]) -> Table:
    table = plain_table("by kind", "", "n", "accuracy", "", "95 %", "searches", "")
    for kind, now in after.items():
        then = before.get(kind)
        table.add_row(
            kind,
            str(now.n),
            short(then.accuracy.value) if then else "–",
            short(now.accuracy.value),
            _span(now.accuracy),
            short(then.calls.value) if then else "–",
            short(now.calls.value),
        )
    return table


def _by_signal(before: Mapping[str, Estimate], after: Mapping[str, Estimate]) -> Table:
    """The user's own signals, and the shipped ones that ever measured anything but 0."""
    table = plain_table("by signal", "", "before", "after", "95 %")
    for name, now in after.items():
        then = before.get(name)
        if ":" in name or now.value or (then and then.value):
            table.add_row(name, short(then.value) if then else "–", short(now.value), _span(now))
    return table


def plain_table(title: str, *columns: str) -> Table:
    """A table without lines, its first column to the left and the others to the right."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    return table


def _span(estimate: Estimate) -> str:
    if estimate.value is None:
        return ""
    return f"{short(estimate.low)} to {short(estimate.high)}"
