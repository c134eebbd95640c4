"""Number: sign, decimal point, scale and unit all count; how it is written does not.

    "68 million" = 68,000,000 = 6800万 = 68000000     150 mg = 0.15 g     "10-15" is a range

One number (or one range) per answer: words before it must be the gold's, words after it its unit.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from outfox.core.errors import DataError
from outfox.rewards.matchers.assertion import assertion_fault, without_lead_in
from outfox.rewards.matchers.gold import Gold, Match, Scalar
from outfox.rewards.matchers.normalise import unicode
from outfox.rewards.matchers.units import Unit, is_known, unit_named

_SCALES = {
    "hundred": 2, "thousand": 3, "k": 3, "million": 6, "mn": 6, "billion": 9, "bn": 9,
    "trillion": 12, "tn": 12, "百": 2, "千": 3, "万": 4, "百万": 6, "千万": 7, "亿": 8, "万亿": 12,
}  # fmt: skip
"""Powers of ten."""
_NUMBER = re.compile(
    r"(?P<sign>(?<![\w.%)])[-+]\s*|\b(?:minus|negative)\s+|负)?"
    r"(?:(?P<currency>us\$|[$€£¥])\s*(?P<inner_sign>-)?)?"
    r"(?<![A-Za-z^])(?P<digits>\d{1,3}(?:,\d{3}){1,9}(?:\.\d+)?(?![\d,])|\d{1,3}(?:\.\d{3}){2,9}(?:,\d+)?(?!\d)"
    r"|\d+(?:[.,]\d+)?|(?<![\d.])\.\d+)"
    r"(?P<exponent>e[-+]?\d{1,4}(?!\d))?"
    r"(?:\s*(?P<scale>(?:hundred|thousand|million|billion|trillion|mn|bn|tn|k)\b|万亿|千万|百万|[百千万亿]))?",
    re.IGNORECASE,
)
_RANGE = re.compile(r"\s*(?:-|~|to|and|至|到)\s*", re.IGNORECASE)
_ACCOUNTING = re.compile(r"^(?:([$€£¥])\s*)?\(\s*((?:[$€£¥]\s*)?\d[^()]*)\)\s*(.*)$")
_DASHES = re.compile(r"[\u2010-\u2015\u2212\uFE58\uFE63]")
_POWER = re.compile(r"(?<=\d)[⁰¹²³⁴-⁹]+|[¼-¾⅐-⅞⁄]")
_NARROW_SPACE = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number, or a range, with its unit and what was said around it."""

    low: Decimal
    high: Decimal
    unit: str = ""
    before: str = ""

    def scaled(self, unit: Unit) -> tuple[Decimal, Decimal]:
        """In the base unit of its dimension."""
        return self.low * unit.factor, self.high * unit.factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A number inside a text."""

    value: Decimal
    start: int
    end: int
    currency: str


@lru_cache(maxsize=65536)
def numbers_in(text: str) -> tuple[Found, ...]:
    """Every number in a text, in order; positions are those of `plain(text)`."""
    found: list[Found] = []
    for hit in _NUMBER.finditer(plain(text)):
        value = _value(hit)
        last = found[-1] if found else None
        if last and last.end == hit.start() and _continues(last.value, value):
            found[-1] = Found(
                value=last.value + value, start=last.start, end=hit.end(), currency=last.currency
            )  # 1亿2000万
            continue
        found.append(
            Found(value=value, start=hit.start(), end=hit.end(), currency=hit["currency"] or "")
        )
    return tuple(found)


def plain(text: str) -> str:
    """NFKC with plain dashes; powers and fractions become unreadable, not other numbers."""
    text = _POWER.sub("^", _NARROW_SPACE.sub(",", text))
    return _DASHES.sub("-", unicodedata.normalize("NFKC", text))


@lru_cache(maxsize=65536)
def read_quantity(text: str) -> Quantity | None:
    """The one number or range that a text states, or None."""
    stated = plain(text).strip().rstrip(".。!").strip()
    accounting = _ACCOUNTING.match(stated)
    if accounting:
        stated = f"-{accounting[1] or ''}{accounting[2].strip()} {accounting[3]}".strip()
    found = numbers_in(stated)
    if not 1 <= len(found) <= 2 or "^" in stated.replace("km^", "").replace("m^", ""):
        return None
    first, last = found[0], found[-1]
    between = stated[first.end : last.start] if len(found) == 2 else "-"
    if not _RANGE.fullmatch(between):
        return None
    before, after = stated[: first.start].strip(), stated[last.end :].strip()
    unit = after or first.currency
    if not unit and is_known(before):
        unit, before = before, ""
    return Quantity(
        low=first.value, high=last.value, unit=unit, before=unicode(without_lead_in(before))
    )


def match_number(gold: Gold, answer: str) -> Match:
    """Equal in value and unit. Raises DataError where the gold states no number."""
    wanted = [_gold_quantity(alternative) for alternative in gold.alternatives]
    fault = assertion_fault(answer)
    if fault:
        return Match(right=False, why=fault)
    given = read_quantity(without_lead_in(plain(answer)))
    if given is None:
        return Match(right=False, why=f"{answer!r:.60} does not state one number")
    reasons = [_difference(quantity, given, gold) for quantity in wanted]
    return Match(right=None in reasons, why=next((why for why in reasons if why), "equal"))


def _gold_quantity(value: Scalar) -> Quantity:
    quantity = None if isinstance(value, bool) else read_quantity(str(value))
    if quantity is None:
        raise DataError(f"reference: type number needs one number, not {value!r}")
    return quantity


def _difference(wanted: Quantity, given: Quantity, gold: Gold) -> str | None:
    """Why the given quantity is not the wanted one, or None."""
    if given.before not in ("", wanted.before):
        return f"says {given.before!r} of it"
    optional = gold.unit is not None and not wanted.unit
    wanted_unit = unit_named(wanted.unit or gold.unit or "")
    given_unit = wanted_unit if optional and not given.unit else unit_named(given.unit)
    if wanted_unit.dimension != given_unit.dimension:
        return f"unit {given.unit or 'missing'!r}"
    for want, have in zip(wanted.scaled(wanted_unit), given.scaled(given_unit), strict=True):
        if abs(want - have) > abs(want) * Decimal(str(gold.tolerance)):
            return f"{have} is not {want}"
    return None


def _value(hit: re.Match[str]) -> Decimal:
    digits = hit["digits"]
    if re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?", digits):
        digits = digits.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits):
        digits = digits.replace(",", "")
    value = Decimal(digits.replace(",", "."))
    if hit["exponent"]:
        value = value.scaleb(max(-60, min(60, int(hit["exponent"][1:]))))
    if hit["scale"]:
        value = value.scaleb(_SCALES[hit["scale"].lower()])
    negative = (hit["sign"] or "").strip().lower() in ("-", "minus", "negative", "负")
    return -value if negative or hit["inner_sign"] else value


def _continues(larger: Decimal, smaller: Decimal) -> bool:
    """Does a second Chinese group go on where the first ended, as in 1亿2000万?"""
    return larger.adjusted() < 20 and larger % 10000 == 0 and 0 < smaller < larger


part = match_number
