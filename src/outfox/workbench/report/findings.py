"""Before and after: the headline, six figures, accuracy by kind, and the whole table."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import cast

from outfox.core.types import JSON
from outfox.workbench.report.charts import number

Block = Mapping[str, JSON]
"""One evaluation as `summary.json` holds it."""

MEASURES: Mapping[str, tuple[str, str]] = {
    "accuracy": ("Accuracy", "right, over all questions; where there is no answer, saying so"),
    "j": ("J", "1 − over-search − under-search"),
    "over_search": ("Over-search", "searches, where the fact is known"),
    "under_search": ("Under-search", "no relevant search, where one is needed"),
    "necessity_precision": ("Necessity precision", "a search was needed, where there was one"),
    "necessity_recall": ("Necessity recall", "a relevant search, where one was needed"),
    "calls": ("Searches", "per question"),
    "calls_known": ("Searches, fact known", "per question"),
    "calls_needed": ("Searches, fact not known", "per question"),
    "conflict": ("Conflict handling", "said and right 1, silently right 0.6, else 0"),
    "abstain_right": ("Right abstention", "says it does not know, where there is no answer"),
    "abstain_false": ("False abstention", "says it does not know, where there is one"),
    "wrong": ("Wrong", "neither right nor an abstention"),
    "tokens_per_correct": ("Tokens per right answer", "the policy’s own tokens, all episodes"),
    "reward": ("Reward", "mean total"),
    "closed_book_recall": ("Closed-book recall", "known facts still recalled without a search"),
    "verified_conflict": ("Verified conflicts", "saw what settles it, where sources disagree"),
    "recovery": ("Recovery", "right, where a call failed"),
    "changed_queries": ("Changed queries", "asked otherwise, where it asked again after a failure"),
    "followed_poison": ("Followed poison", "took over a wrong value from a tampered passage"),
    "query_utility": ("Query utility", "new evidence per result"),
    "harmful_query_rate": ("Harmful queries", "share of queries that made things worse"),
    "stop_late": ("Late stops", "searched on after enough was known"),
    "stop_premature": ("Premature stops", "stopped before enough was known"),
    "attribution": ("Attribution", "does the answer depend on what it cites?"),
    "aurc": ("Risk–coverage area", "errors as more questions are answered"),
}
"""Every key of a summary block: its name, and what it says."""

_TILES = ("accuracy", "j", "calls_known", "calls_needed", "abstain_right", "tokens_per_correct")
_SHARES = frozenset({"accuracy", "abstain_right"})


def headline(before: Block | None, after: Block | None) -> str:
    """What happened, in a sentence or two."""
    block = after or before
    if block is None or block.get("accuracy") is None:
        return "<p class='lead'>No evaluation is stored yet; the curves show the run so far.</p>"
    was = before if after else None
    text = (
        f"<strong>{_percent(block, 'accuracy')}</strong> of held-out questions are answered right"
    )
    text += f", up from {_percent(was, 'accuracy')}. " if _rose(was, block) else _from(was)
    if block.get("calls_known") is not None and block.get("calls_needed") is not None:
        text += (
            f"Where the policy knows the fact it searches <strong>{_plain(block, 'calls_known')}"
            f"</strong> times a question{_was(was, 'calls_known')}; where it does not, <strong>"
            f"{_plain(block, 'calls_needed')}</strong> times{_was(was, 'calls_needed')}."
        )
    return f'<p class="lead">{text}</p>'


def tiles(before: Block | None, after: Block | None) -> str:
    """Six figures with intervals, each beside what it was."""
    block = after or before
    if block is None:
        return ""
    shown = "".join(_tile(key, before if after else None, block) for key in _TILES)
    return f'<ul class="tiles">{shown}</ul>'


def greedy(block: Block | None) -> str:
    """One line on the evaluation at temperature 0, where one was made."""
    if block is None or block.get("accuracy") is None:
        return ""
    return (
        f'<p class="greedy">Always taking the likeliest token (temperature 0): '
        f"{_percent(block, 'accuracy')} right, J {_plain(block, 'j')}, "
        f"{_plain(block, 'calls')} searches a question.</p>"
    )


def by_kind(before: Block | None, after: Block | None) -> str:
    """A row per kind of question: accuracy before and after with intervals, searches, n."""
    was, now = _kinds(before), _kinds(after)
    kinds = sorted({*was, *now})
    if not kinds:
        return '<p class="empty">No evaluation is stored.</p>'
    rows = "".join(_kind_row(kind, was.get(kind), now.get(kind)) for kind in kinds)
    scale = "".join(f'<i style="left:{x}%">{x}&thinsp;%</i>' for x in (0, 25, 50, 75, 100))
    return (
        '<div class="kinds" role="table"><div class="kind head" role="row">'
        '<span role="columnheader">Kind of question</span>'
        f'<span class="scale" role="columnheader" aria-label="accuracy">{scale}</span>'
        '<span role="columnheader">right</span><span role="columnheader">searches</span>'
        f'<span role="columnheader">n</span></div>{rows}</div>'
        '<ul class="legend"><li><i class="dot was"></i>before</li>'
        '<li><i class="dot now"></i>after</li><li><i class="whisker"></i>95 % interval</li></ul>'
    )


def table(before: Block | None, after: Block | None) -> str:
    """Every measure of the summary, with its interval."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}<small>{escape(about)}</small></th>'
        f"<td>{_cell(before, key)}</td><td>{_cell(after, key)}</td></tr>"
        for key, (name, about) in MEASURES.items()
    )
    return (
        '<table class="measures"><thead><tr><th scope="col">Measure</th>'
        f'<th scope="col">Before</th><th scope="col">After</th></tr></thead><tbody>{rows}</tbody>'
        "</table>"
    )


def _tile(key: str, before: Block | None, block: Block) -> str:
    name, about = MEASURES[key]
    value = _percent(block, key) if key in _SHARES else _plain(block, key)
    low, high = _interval(block, key)
    spread = f"{_show(key, low)} – {_show(key, high)}" if low is not None else "&nbsp;"
    was = before.get(key) if before else None
    earlier = f'<span class="was">was {_show(key, was)}</span>' if was is not None else ""
    return (
        f'<li title="{escape(about)}"><h3>{escape(name)}</h3><b>{value}</b>{earlier}'
        f"<small>{spread}</small></li>"
    )


def _kinds(block: Block | None) -> Mapping[str, Block]:
    return cast("Mapping[str, Block]", block["by_kind"]) if block else {}


def _kind_row(kind: str, before: Block | None, after: Block | None) -> str:
    marks = _mark(before, "was") + _mark(after, "now")
    latest = after or before
    count = latest["n"] if latest else 0
    calls = " → ".join(_plain(block, "calls") for block in (before, after) if block)
    right = _percent(latest, "accuracy")
    spoken = " to ".join(_percent(block, "accuracy") for block in (before, after) if block)
    return (
        f'<div class="kind" role="row"><span role="rowheader">{escape(kind.replace("_", " "))}'
        f'</span><span class="track" role="cell" aria-label="accuracy {spoken}">{marks}</span>'
        f'<span role="cell"><b>{right}</b></span><span role="cell">{calls}</span>'
        f'<span role="cell">{count}</span></div>'
    )


def _mark(block: Block | None, when: str) -> str:
    """A dot at the accuracy and a line over its interval."""
    if block is None or block.get("accuracy") is None:
        return ""
    low, high = _interval(block, "accuracy")
    line = ""
    if low is not None and high is not None:
        line = (
            f'<s class="{when}" style="left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%"></s>'
        )
    return f'{line}<i class="dot {when}" style="left:{100 * block["accuracy"]:.1f}%"></i>'


def _cell(block: Block | None, key: str) -> str:
    value = block.get(key) if block else None
    if value is None:
        return '<span class="dash">–</span>'
    low, high = _interval(cast("Block", block), key)
    if low is None or high is None:
        return _fixed(value)
    return f"{_fixed(value)}<small>{_fixed(low)} – {_fixed(high)}</small>"


def _interval(block: Block, key: str) -> tuple[float, float] | tuple[None, None]:
    found = cast("Block", block["intervals"]).get(key)
    return (found["low"], found["high"]) if found and found["low"] is not None else (None, None)


def _show(key: str, value: float | None) -> str:
    if value is None:
        return "–"
    if key in _SHARES:
        return f"{100 * value:.0f}&thinsp;%"
    return f"{value:.0f}" if key == "tokens_per_correct" else number(value)


def _fixed(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _percent(block: Block | None, key: str) -> str:
    value = block.get(key) if block else None
    return "–" if value is None else f"{100 * value:.0f}&thinsp;%"


def _plain(block: Block | None, key: str) -> str:
    return _show(key, block.get(key) if block else None)


def _rose(before: Block | None, after: Block) -> bool:
    was = before.get("accuracy") if before else None
    return was is not None and after["accuracy"] > was


def _from(before: Block | None) -> str:
    return f" ({_percent(before, 'accuracy')} before). " if before else ". "


def _was(before: Block | None, key: str) -> str:
    return f" (was {_plain(before, key)})" if before and before.get(key) is not None else ""
