from __future__ import annotations

import contextlib
import unicodedata
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from outfox.core.errors import DataError
from outfox.rewards.matchers import is_abstention, match
from outfox.rewards.matchers.assertion import assertion_fault
from outfox.rewards.matchers.list import one_to_one
from outfox.rewards.matchers.normalise import compatible, contains, unicode
from outfox.rewards.matchers.number import numbers_in, read_quantity

words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
numbers = st.decimals(-(10**9), 10**9, places=2, allow_nan=False)
KINDS = ("text", "entity", "number", "date", "boolean")


@given(text=words)
def test_keys_are_stable(text: str) -> None:
    key = unicode(text)
    assert unicode(unicodedata.normalize("NFD", text)) == unicode(
        unicodedata.normalize("NFC", text)
    )
    assert key == key.strip()
    assert "  " not in key


@given(text=words)
def test_text_matches_itself_unless_it_is_empty(text: str) -> None:
    found = match({"type": "text", "answer": text}, text)
    assert found.right is bool(unicode(text))
    assert (found.fault is None) is found.right


@given(gold=words, answer=words, kind=st.sampled_from(KINDS))
def test_matching_never_crashes_but_by_data_error(gold: str, answer: str, kind: str) -> None:
    with contextlib.suppress(DataError):  # a gold that is none of its kind
        found = match({"type": kind, "answer": gold}, answer)
        assert found.right or found.why


@given(gold=st.sampled_from(["franc", "Alpha Bravo", "欧元"]), other=words)
def test_an_answer_that_lists_gold_beside_something_else_is_not_right(
    gold: str, other: str
) -> None:
    for answer in (f"{other} or {gold}", f"not {gold}", f"{gold} or {other}"):
        accepted = match({"type": "entity", "answer": gold}, answer).right
        assert not accepted


@given(value=numbers)
def test_a_number_is_read_back_from_any_writing(value: Decimal) -> None:
    for written in (f"{value}", f"{value:,}", f"{value} ", f"{value:+}", f"the answer is {value}"):
        assert match({"type": "number", "answer": str(value)}, written).right, written
    assert [found.value for found in numbers_in(f"about {value} of it")] == [value]


@given(value=numbers, other=numbers)
def test_another_number_is_not_right(value: Decimal, other: Decimal) -> None:
    right = match({"type": "number", "answer": str(value)}, f"{other:,}").right
    assert right is (value == other)


@given(millions=st.integers(1, 99999))
def test_scales_agree(millions: int) -> None:
    gold = {"type": "number", "answer": millions * 10**6}
    for written in (f"{millions} million", f"{millions * 100}万", f"{Decimal(millions) / 100}亿"):
        assert match(gold, written).right, written
    assert read_quantity(f"{millions} million") != read_quantity(f"-{millions} million")


@given(before=words, gold=st.sampled_from(["franc", "Alpha Bravo", "欧元"]), after=words)
def test_a_form_between_spaces_is_contained(before: str, gold: str, after: str) -> None:
    assert contains(f"{before} ; {gold} ; {after}", gold)


@given(text=words)
def test_an_abstention_asserts_nothing_else(text: str) -> None:
    if unicode(text) and not is_abstention(text) and assertion_fault(text) is None:
        assert not is_abstention(f"I don't know. {text}")
        assert not is_abstention(f"unknown, but maybe {text}")
    assert compatible(compatible(text)) == compatible(text)


@settings(max_examples=50)
@given(
    edges=st.integers(0, 5).flatmap(
        lambda width: st.lists(st.lists(st.booleans(), min_size=width, max_size=width), max_size=5)
    )
)
def test_one_to_one_against_exhaustive_search(edges: list[list[bool]]) -> None:
    def best(item: int, free: frozenset[int]) -> int:
        if item == len(edges):
            return 0
        uses = [1 + best(item + 1, free - {g}) for g in free if edges[item][g]]
        return max([best(item + 1, free), *uses])

    width = len(edges[0]) if edges else 0
    assert one_to_one(edges) == best(0, frozenset(range(width)))
