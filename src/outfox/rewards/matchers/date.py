"""Date: year, year and month, or day, in ISO, English or Chinese; an answer may be more precise.

"03/05/2021" is ambiguous unless one part is above 12, and an ambiguous date is not right.
"""

from __future__ import annotations

import calendar
import re
import unicodedata
from dataclasses import dataclass

from outfox.core.errors import DataError
from outfox.rewards.matchers.assertion import assertion_fault, without_lead_in
from outfox.rewards.matchers.gold import Gold, Match, Scalar

_MONTHS = {
    name.lower(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
} | {"sept": 9}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<y>\d{4})-(?P<m>\d{1,2})(?:-(?P<d>\d{1,2}))?(?:t[\d:.]+z?)?",
        r"(?P<y>\d{4})[/.](?P<m>\d{1,2})[/.](?P<d>\d{1,2})",
        r"(?P<y>\d{4})\s*年(?:\s*(?P<m>\d{1,2})\s*月(?:\s*(?P<d>\d{1,2})\s*[日号])?)?",
        rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<name>{_MONTH})\.?,?\s+(?P<y>\d{{4}})",
        rf"(?P<name>{_MONTH})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y>\d{{4}})",
        rf"(?P<name>{_MONTH})\.?,?\s+(?P<y>\d{{4}})",
        r"(?P<first>\d{1,2})[/.-](?P<second>\d{1,2})[/.-](?P<y>\d{4})",
        r"(?P<y>\d{4})",
    )
)
_UNNAMED = [re.sub(r"[?]P<[a-z]+>", "?:", pattern.pattern) for pattern in _PATTERNS]
_IN_TEXT = re.compile(r"(?<!\d)(?:" + "|".join(_UNNAMED) + r")(?!\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Date:
    """A day, a month or a year of the common calendar."""

    year: int
    month: int | None = None
    day: int | None = None

    def says(self, other: Date) -> bool:
        """Does this date entail the other, which may be less precise?"""
        return (
            self.year == other.year
            and other.month in (None, self.month)
            and other.day in (None, self.day)
        )


def read_date(text: str) -> Date | None:
    """The date that a text is, or None where it is none, impossible or ambiguous."""
    stated = unicodedata.normalize("NFKC", text).strip().rstrip(".。").strip()
    stated = re.sub(r"^(?:on|in|at)\s+", "", stated, flags=re.IGNORECASE)
    for pattern in _PATTERNS:
        found = pattern.fullmatch(stated)
        if found:
            return _date(found.groupdict())
    return None


def dates_in(text: str) -> list[Date]:
    """Every date in a text."""
    stated = unicodedata.normalize("NFKC", text)
    read = (read_date(hit.group()) for hit in _IN_TEXT.finditer(stated))
    return [date for date in read if date]


def match_date(gold: Gold, answer: str) -> Match:
    """The same date, or a more precise one. Raises DataError where the gold is no date."""
    wanted = [_gold_date(alternative) for alternative in gold.alternatives]
    fault = assertion_fault(answer)
    if fault:
        return Match(right=False, why=fault)
    given = read_date(without_lead_in(answer))
    if given is None:
        return Match(right=False, why=f"{answer!r:.60} is no date that can be read one way only")
    return Match(right=any(given.says(date) for date in wanted), why=str(given))


def _gold_date(value: Scalar) -> Date:
    date = read_date(str(value))
    if date is None:
        raise DataError(f"reference: type date needs a date such as 2021-05-03, not {value!r}")
    return date


def _date(groups: dict[str, str | None]) -> Date | None:
    year, name = int(groups["y"] or 0), groups.get("name")
    month = _MONTHS[name.lower()] if name else int(groups.get("m") or 0) or None
    day = int(groups.get("d") or 0) or None
    if groups.get("first"):
        first, second = int(groups["first"] or 0), int(groups["second"] or 0)
        if first <= 12 and second <= 12 and first != second:
            return None
        day, month = (first, second) if first > 12 else (second, first)
    if month is not None and not 1 <= month <= 12:
        return None
    if month is not None and day is not None and day > calendar.monthrange(max(year, 1), month)[1]:
        return None
    return Date(year=year, month=month, day=day)


part = match_date
