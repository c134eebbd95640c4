"""Boolean: a yes or a no, alone or at the head of a sentence that does not take it back."""

from __future__ import annotations

import re

from outfox.core.errors import DataError
from outfox.rewards.matchers.assertion import assertion_fault, without_lead_in
from outfox.rewards.matchers.gold import Gold, Match, Scalar
from outfox.rewards.matchers.normalise import unicode

_TRUE = frozenset(
    {"yes", "true", "correct", "right", "是", "是的", "对", "对的", "正确", "有", "会", "能"}
)
_FALSE = frozenset(
    {
        "no",
        "false",
        "incorrect",
        "wrong",
        "否",
        "不是",
        "不",
        "不对",
        "错",
        "错误",
        "没有",
        "不会",
        "不能",
    }
)
_HEAD = re.compile(r"^\s*([^\W\d_]+)\s*[,.;:!。]\s*(.*)$", re.DOTALL)


def truth(text: str) -> bool | None:
    """What a bare yes or no means, else None."""
    key = unicode(text)
    if key in _TRUE:
        return True
    return False if key in _FALSE else None


def match_boolean(gold: Gold, answer: str) -> Match:
    """The same truth value. Raises DataError where the gold is neither yes nor no."""
    wanted = {_gold_truth(alternative) for alternative in gold.alternatives}
    if len(wanted) > 1:
        raise DataError(f"reference: a boolean cannot be both yes and no: {gold.alternatives}")
    given = _asserted(without_lead_in(answer))
    if given is None:
        return Match(right=False, why=f"{answer!r:.60} is neither yes nor no")
    return Match(right=given in wanted, why="yes" if given else "no")


def _gold_truth(value: Scalar) -> bool:
    found = value if isinstance(value, bool) else truth(str(value))
    if found is None:
        raise DataError(f"reference: a boolean answer is true, false, yes or no, not {value!r}")
    return found


def _asserted(answer: str) -> bool | None:
    whole = truth(answer)
    if whole is not None:
        return whole
    head = _HEAD.match(answer)
    if head is None:
        return None
    first, rest = truth(head[1]), head[2]
    taken_back = first is not None and any(
        truth(word) is (not first) for word in unicode(rest).split()
    )
    if first is None or taken_back:
        return None
    fault = assertion_fault(rest)
    negated = fault is not None and fault.startswith("negated")
    return first if fault is None or (negated and not first) else None


part = match_boolean
