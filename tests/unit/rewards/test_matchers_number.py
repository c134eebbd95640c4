from __future__ import annotations

from decimal import Decimal

import pytest

from outfox.core.errors import DataError
from outfox.core.types import JSON
from outfox.rewards.matchers import match
from outfox.rewards.matchers.number import numbers_in


def number(answer: JSON, **options: JSON) -> dict[str, JSON]:
    return {"type": "number", "answer": answer, **options}


@pytest.mark.parametrize(
    "answer",
    [
        "68 million", "68,000,000", "68000000", "68\u202f000\u202f000", "6800万", "0.68亿",
        "68.000.000", "6.8e7", "68 Million.", "The answer is 68 million", "+68 million",
    ],
)  # fmt: skip
def test_one_value_in_many_writings(answer: str) -> None:
    assert match(number(68_000_000), answer).right


@pytest.mark.parametrize(
    "answer",
    [
        "6.8 million", "68", "-68 million", "68 million or 69 million", "maybe 68 million",
        "not 68 million", "between 60 and 68 million", "68 million%", "", "sixty",
        "loss of 68 million",         "68², million",
    ],
)  # fmt: skip
def test_other_values_and_other_statements(answer: str) -> None:
    assert not match(number(68_000_000), answer).right


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("150 mg", "0.15 g", True),
        ("150 mg", "150", False),
        ("150 mg", "150 ml", False),
        ("1.5 kg", "1500g", True),
        ("15%", "15 percent", True),
        ("15%", "0.15", False),
        ("-2.4%", "−2.4%", True),
        ("-2.4%", "minus 2.4%", True),
        ("-2.4%", "负2.4%", True),
        ("$4.2 million", "4.2 million USD", True),
        ("$4.2 million", "US$4,200,000", True),
        ("$4.2 million", "€4.2 million", False),
        ("-$4.2 million", "($4.2 million)", True),
        ("$4.2 million", "($4.2 million)", False),
        ("3.5 km²", "3.5 square kilometers", True),
        ("3.5 km²", "350 ha", True),
        ("1亿2000万", "120 million", True),
        ("10-15", "10 to 15", True),
        ("10-15", "10", False),
        ("5", "5,0", True),
        ("5 furlongs", "5 furlongs", True),
        ("5 furlongs", "5 miles", False),
    ],
)
def test_sign_and_unit(gold: str, answer: str, right: bool) -> None:
    assert match(number(gold), answer).right is right


def test_a_unit_that_the_question_names_may_be_left_out() -> None:
    gold = number(643_801, unit="km2")
    assert match(gold, "643801").right
    assert match(gold, "643,801 km²").right
    assert match(gold, "643801 平方公里").right
    assert not match(gold, "643801 m2").right


def test_tolerance_is_relative() -> None:
    gold = number(200, tolerance=0.01)
    assert match(gold, "198").right
    assert not match(gold, "197.9").right


def test_aliases_are_other_right_values() -> None:
    assert match(number(5, aliases=["6"]), "6").right


def test_gold_without_a_number_is_a_data_error() -> None:
    with pytest.raises(DataError, match="row 4: reference: type number needs one number"):
        match(number("many"), "5", row=4)


def test_numbers_in_a_text() -> None:
    text = "In 2020, 1,234 people paid $3.5 million; -2% fell; km2 is a unit."
    assert [found.value for found in numbers_in(text)] == [
        Decimal(2020), Decimal(1234), Decimal(3_500_000), Decimal(-2)
    ]  # fmt: skip
