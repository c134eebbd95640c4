"""Necessity: was this call needed?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from outfox.core.protocols import SignalContext
from outfox.core.results import NotApplicable, Value
from outfox.core.types import JSON, ToolCall, Trajectory
from outfox.rewards.evidence import call_text
from outfox.rewards.lift import signal
from outfox.rewards.matchers.normalise import is_cjk, unicode

_FILLER = frozenset(
    (
        *("a", "an", "the", "of", "in", "on", "at", "for", "to", "is", "are", "was", "were"),
        *("what", "which", "who", "when", "where", "how", "does", "do", "did"),
        *"的了是在吗什么谁哪",
    )
)


@signal(range=(0, 1), family="necessity", scope="group")
def needless_calls(
    trajectory: Trajectory,
    context: SignalContext,
    *,
    scale: float = 3.0,
    fewest: Literal["siblings", "world"] = "siblings",
) -> Value | NotApplicable:
    """min(1, needless / scale): calls beyond those needed; the price of one is weight / scale.

    Needed are none where the question is solvable closed-book (unless the domain must ground), else
    the fewest calls of the right and supported siblings (`fewest: siblings`), or the world's hop
    count `metadata["hops"]` (`fewest: world`, for the attack).
    """
    made = len(trajectory.calls)
    if context.solvable == "undetermined" and not context.must_ground:
        return NotApplicable(why="closed-book solvability is undetermined")
    if context.solvable == "solvable" and not context.must_ground:
        return Value(value=min(1.0, made / scale), why=f"{made} calls, none needed")
    needed = _world_calls(trajectory) if fewest == "world" else _sibling_calls(context)
    if needed is None:
        return NotApplicable(why="nobody knows how many calls were needed")
    needless = max(0, made - needed)
    return Value(value=min(1.0, needless / scale), why=f"{made} calls, {needed} needed")


def _world_calls(trajectory: Trajectory) -> int | None:
    hops = trajectory.task.metadata.get("hops")
    return hops if isinstance(hops, int) else None


def _sibling_calls(context: SignalContext) -> int | None:
    honest = [
        len(sibling.calls)
        for sibling, right, supported in zip(
            context.group.trajectories, context.right, context.supported, strict=True
        )
        if right and supported
    ]
    return min(honest, default=None)


@signal(range=(0, 1), family="necessity")
def duplicates(trajectory: Trajectory, *, similarity: float = 0.8) -> Value | NotApplicable:
    """Share of calls that repeat an earlier one.

    Same tool and arguments up to writing; or nearly the same words (Jaccard index of the content
    words from `similarity` on, all words with digits equal) without bringing a new document.
    """
    calls = trajectory.calls
    if not calls:
        return NotApplicable(why="no call")
    fresh = _brought_something_new(trajectory)
    repeats = sum(
        any(
            _same(call, earlier) or (not fresh[index] and _nearly_same(call, earlier, similarity))
            for earlier in calls[:index]
        )
        for index, call in enumerate(calls)
    )
    return Value(value=repeats / len(calls), why=f"{repeats} of {len(calls)} calls repeated")


@signal(range=(0, 1), family="necessity")
def novelty(trajectory: Trajectory) -> float | NotApplicable:
    """Share of calls that brought a document not seen before in this episode."""
    fresh = _brought_something_new(trajectory)
    return sum(fresh) / len(fresh) if fresh else NotApplicable(why="no call")


def _brought_something_new(trajectory: Trajectory) -> list[bool]:
    """Per call, in order."""
    by_call = {result.tool_call_id: result.documents for result in trajectory.results}
    seen: set[str] = set()
    fresh: list[bool] = []
    for call in trajectory.calls:
        hashes = {document.hash for document in by_call.get(call.id, ())}
        fresh.append(not hashes <= seen)
        seen |= hashes
    return fresh


def _same(call: ToolCall, other: ToolCall) -> bool:
    return call.name == other.name and _written(call.arguments) == _written(other.arguments)


def _written(arguments: Mapping[str, JSON]) -> list[tuple[str, str]]:
    return sorted((key, unicode(str(value))) for key, value in arguments.items())


def _nearly_same(call: ToolCall, other: ToolCall, similarity: float) -> bool:
    if call.name != other.name:
        return False
    mine, theirs = (set(_words(call_text(each.arguments))) for each in (call, other))
    if {w for w in mine if re.search(r"\d", w)} != {w for w in theirs if re.search(r"\d", w)}:
        return False
    union = mine | theirs
    return bool(union) and len(mine & theirs) / len(union) >= similarity


def _words(text: str) -> Sequence[str]:
    """Content words; each CJK character is one."""
    spaced = "".join(f" {c} " if is_cjk(c) else c for c in unicode(text))
    return [word for word in spaced.split() if word not in _FILLER]


SIGNALS = (needless_calls, duplicates, novelty)
