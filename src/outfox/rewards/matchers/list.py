"""List: items matched one to one; right where precision and recall are both 1.

"Bosnia and Herzegovina" and "Washington, D.C." are split as little as the gold asks for: neighbours
that together name a gold item are one item.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import cast

from outfox.core.text import read_json
from outfox.rewards.matchers.assertion import assertion_fault, without_lead_in
from outfox.rewards.matchers.gold import Gold, Match
from outfox.rewards.matchers.normalise import compatible, unicode

ItemMatcher = Callable[[Gold, str], Match]

_STRONG = re.compile(r" ?(?:[;\n]|(?<!\d)、) ?")
_ANY = re.compile(r" ?(?:[;、\n]|,(?!\d{3})| and | & |以及|和|及|与) ?", re.IGNORECASE)
_BULLET = re.compile(r"^(?:[-*•]|\d+[.)]) ", re.MULTILINE)
_SPARE = 3
"""Pieces that an item may be cut into beyond those of the longest gold item."""


def match_list(gold: Gold, answer: str, matcher: ItemMatcher) -> Match:
    """`matcher` compares one item with one gold item."""
    golds = cast("tuple[Gold, ...]", gold.answer)
    fault = assertion_fault(answer)
    if fault:
        return Match(right=False, why=fault, precision=0.0, recall=0.0)
    items = split_items(without_lead_in(answer), golds, matcher)
    edges = [[matcher(wanted, item).right for wanted in golds] for item in items]
    pairs = one_to_one(edges)
    precision = pairs / len(items) if items else 0.0
    recall = pairs / len(golds)
    return Match(
        right=precision == recall == 1.0,
        why=f"{pairs} of {len(items)} items are gold, of {len(golds)}",
        precision=precision,
        recall=recall,
    )


def split_items(answer: str, golds: Sequence[Gold], matcher: ItemMatcher) -> list[str]:
    """The answer's items; neighbours are joined where together they are a gold item."""
    answer = compatible(answer)
    listed = _json_items(answer)
    if listed is not None:
        return listed
    answer = _BULLET.sub("", _single_blanks(answer)).rstrip(".。")
    written = [str(form) for gold in golds for form in gold.alternatives]
    longest = max((len(_ANY.findall(form)) for form in written), default=0) + 1 + _SPARE
    items: list[str] = []
    for stretch in filter(None, _STRONG.split(answer)):
        items += _joined(stretch, golds, matcher, longest)
    return items


def _single_blanks(text: str) -> str:
    """So that the separators need not be looked for in long runs of blanks, again and again."""
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(filter(None, lines))


def _joined(stretch: str, golds: Sequence[Gold], matcher: ItemMatcher, longest: int) -> list[str]:
    """From left to right, the longest run of neighbours that is a gold item, else one piece.

    A run has at most `longest` pieces.
    """
    cuts = [0, *(hit.start() for hit in _ANY.finditer(stretch)), len(stretch)]
    items: list[str] = []
    begin = 0
    while begin < len(cuts) - 1:
        runs = {
            end: _trimmed(stretch[cuts[begin] : cuts[end]])
            for end in range(begin + 1, min(begin + longest + 1, len(cuts)))
        }
        golden = [
            end for end, run in runs.items() if any(matcher(gold, run).right for gold in golds)
        ]
        end = max(golden, default=begin + 1)
        if unicode(runs[end]):
            items.append(runs[end])
        begin = end
    return items


def _trimmed(text: str) -> str:
    """Without the separator it begins with."""
    hit = _ANY.match(text)
    return text[hit.end() :] if hit else text


def _json_items(answer: str) -> list[str] | None:
    if not answer.lstrip().startswith("["):
        return None
    try:
        data = read_json(answer)
    except ValueError:
        return None
    return [str(item) for item in cast("list[object]", data)] if isinstance(data, list) else None


def one_to_one(edges: Sequence[Sequence[bool]]) -> int:
    """Most pairs that can be formed when each item and each gold is used once (Kuhn's method)."""
    taken: dict[int, int] = {}

    def place(item: int, seen: set[int]) -> bool:
        for gold, fits in enumerate(edges[item]):
            if fits and gold not in seen:
                seen.add(gold)
                if gold not in taken or place(taken[gold], seen):
                    taken[gold] = item
                    return True
        return False

    return sum(place(item, set()) for item in range(len(edges)))
