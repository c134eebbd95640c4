"""What kind of statement an answer is: one assertion, several, a hedge, a denial, an abstention."""

from __future__ import annotations

import re

from outfox.rewards.matchers.normalise import compatible, unicode

_ABSTENTIONS = frozenset(
    unicode(phrase)
    for phrase in (
        "unknown", "i don't know", "i do not know", "don't know", "do not know", "not known",
        "it is unknown", "it is not known", "i'm not sure", "i am not sure", "not sure",
        "cannot be determined", "it cannot be determined", "can't be determined", "undetermined",
        "cannot answer", "i cannot answer", "i can't answer", "unanswerable", "not answerable",
        "no answer", "no answer found", "not found", "i could not find it", "could not find it",
        "i couldn't find it", "insufficient information", "not enough information",
        "no information", "information not available", "not available", "n/a",
        "不知道", "我不知道", "未知", "不详", "不清楚", "我不清楚", "不确定", "我不确定",
        "无法确定", "无法回答", "无法得知", "无从得知", "没有答案", "无答案", "信息不足",
        "没有足够的信息", "没有相关信息", "查不到", "没查到", "未找到", "没有找到", "找不到",
    )
)  # fmt: skip
_ABSTAINING_START = re.compile(
    r"(?:i (?:dont|do not) know|i (?:could not|couldnt|cannot|cant) (?:find|determine|answer)|"
    r"there is (?:no|not enough) information|"
    r"(?:我)?(?:不知道|不清楚|无法确定|无法回答|查不到|未找到|没有找到))"
)
_TURN = re.compile(
    r"\b(?:but|however|maybe|perhaps|probably|possibly|guess|though)\b|但|不过|可能|也许|大概|应该"
)
_SENTENCE_END = re.compile(r"[.!?;:。](?=\s*\S)|\n|—")

_NEGATION = re.compile(
    r"\b(?:not|never|neither|nor|isn['’]?t|wasn['’]?t|aren['’]?t|weren['’]?t|doesn['’]?t|"
    r"didn['’]?t|can['’]?t|cannot|except|rather than|instead of|anything but)\b|"
    r"不是|并非|而非|没有|除了",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|might|may be|could be|likely|i (?:think|guess|believe)|"
    r"not sure|unsure|approximately or)\b|可能|也许|大概|或许|应该是|我猜|我想|好像|不确定",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"\b(?:or|either|alternatively)\b|或者|或是|还是|或|\s[/|]\s", re.IGNORECASE)
_TAG = re.compile(
    r"</?\s*(?:answer|search|information|think|tool_call|tool_response)\b", re.IGNORECASE
)
_LEAD_IN = re.compile(
    r"^\s*(?:(?:the|my|final)\s+)*(?:(?:final\s+)?answer\s*(?:is\b|[:=])|it\s+is\b|it['’]s\b|"
    r"that\s+is\b|答案(?:是|为)?|最终答案(?:是|为)?)\s*[:,]?\s*",
    re.IGNORECASE,
)


def is_abstention(answer: str | None) -> bool:
    """Does the answer say, and only say, that it does not know (English, Chinese)?

    "I don't know, but maybe Paris" is a hedged answer, no abstention.
    """
    if answer is None:
        return False
    stripped = without_lead_in(answer)
    key = unicode(stripped)
    if key in _ABSTENTIONS:
        return True
    if _TURN.search(key) or _SENTENCE_END.search(stripped.strip()):
        return False
    return _ABSTAINING_START.match(key) is not None


def without_lead_in(answer: str) -> str:
    """The answer, in compatible characters, without "The answer is" and the like."""
    return _LEAD_IN.sub("", compatible(answer), count=1)


def assertion_fault(answer: str) -> str | None:
    """Why this is not one assertion, or None. For types whose value is read out of a phrase."""
    answer = compatible(answer)
    for pattern, why in (
        (_TAG, "the answer holds tags"),
        (_NEGATION, "negated"),
        (_HEDGE, "hedged"),
        (_SEVERAL, "several candidates listed"),
    ):
        found = pattern.search(answer)
        if found:
            return f"{why} ({found.group().strip()!r})"
    return None
