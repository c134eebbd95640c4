"""Date, list, boolean, multiple choice, abstention."""

from __future__ import annotations

import pytest

from outfox.core.errors import DataError
from outfox.core.types import JSON
from outfox.rewards.matchers import is_abstention, match
from outfox.rewards.matchers.list import one_to_one


@pytest.mark.parametrize(
    "answer",
    ["2021-05-03", "3 May 2021", "May 3rd, 2021", "2021年5月3日", "2021/5/3", "on May 3, 2021.",
     "\uff12\uff10\uff12\uff11年5月3日"],
)  # fmt: skip
def test_date_in_many_writings(answer: str) -> None:
    assert match({"type": "date", "answer": "2021-05-03"}, answer).right


@pytest.mark.parametrize(
    "answer",
    ["03/05/2021", "May 2021", "2021", "2021-05-04", "2021-13-03", "2021-02-30", "3 or 4 May 2021",
     "not 3 May 2021", "soon"],
)  # fmt: skip
def test_other_dates(answer: str) -> None:
    assert not match({"type": "date", "answer": "2021-05-03"}, answer).right


def test_date_that_can_be_read_one_way_only() -> None:
    assert match({"type": "date", "answer": "2021-05-31"}, "31/05/2021").right
    assert match({"type": "date", "answer": "2021-05-31"}, "05/31/2021").right


def test_a_more_precise_date_entails_the_gold() -> None:
    assert match({"type": "date", "answer": "May 2021"}, "2021-05-03").right
    assert not match({"type": "date", "answer": "2021-05-03"}, "May 2021").right


NEIGHBOURS: dict[str, JSON] = {
    "type": "list",
    "answer": [
        "Bosnia and Herzegovina",
        {"answer": "Czechia", "aliases": ["Czech Republic"]},
        "Mali",
    ],
}


@pytest.mark.parametrize(
    ("answer", "precision", "recall"),
    [
        ("Mali, Czech Republic, Bosnia and Herzegovina", 1.0, 1.0),
        ("Bosnia and Herzegovina; Mali; Czechia", 1.0, 1.0),
        ("Czechia, Mali and Bosnia and Herzegovina.", 1.0, 1.0),
        ("- Czechia\n- Mali\n- Bosnia and Herzegovina", 1.0, 1.0),
        ('["Czechia", "Mali", "Bosnia and Herzegovina"]', 1.0, 1.0),
        ("Mali", 1.0, 1 / 3),
        ("Mali, Mali, Czechia", 2 / 3, 2 / 3),
        ("Mali, Czechia, Bosnia and Herzegovina, Chad", 3 / 4, 1.0),
        ("Mali, Czechia or Bosnia and Herzegovina", 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_list_precision_and_recall(answer: str, precision: float, recall: float) -> None:
    found = match(NEIGHBOURS, answer)
    assert (found.precision, found.recall) == pytest.approx((precision, recall))
    assert found.right is (precision == recall == 1.0)


def test_chinese_list() -> None:
    gold = {"type": "list", "answer": ["法国", "德国", "意大利"]}
    assert match(gold, "意大利、法国和德国").right
    assert match(gold, "意大利\uff0c法国\uff1b德国。").right
    assert not match(gold, "法国和德国").right


def test_one_to_one_finds_the_largest_matching() -> None:
    assert one_to_one([[True, True], [True, False]]) == 2
    assert one_to_one([[True, False], [True, False]]) == 1
    assert one_to_one([]) == 0


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("yes", True), ("Yes, it is.", True), ("TRUE", True), ("对。", True),
        ("是的\uff0c对", True),
        ("no", False), ("No. It is not.", False), ("不是", False), ("没有", False),
        ("yes and no", None), ("Yes, no", None), ("maybe yes", None), ("Nottingham", None),
        ("I know", None), ("Yes, maybe", None), ("yes, it is not", None), ("", None),
    ],
)  # fmt: skip
def test_boolean(answer: str, said: bool | None) -> None:
    assert match(True, answer).right is (said is True)
    assert match({"type": "boolean", "answer": "no"}, answer).right is (said is False)


def test_boolean_gold_must_be_one_of_them() -> None:
    with pytest.raises(DataError, match="yes or no"):
        match({"type": "boolean", "answer": "perhaps"}, "yes")
    with pytest.raises(DataError, match="cannot be both"):
        match({"type": "boolean", "answer": "yes", "aliases": ["no"]}, "yes")


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("B", True), ("(b)", True), ("\uff08\uff22\uff09", True),
        ("B\uff1aParis", True), ("B.", True), ("B) Paris", True), ("Paris", True),
        ("The answer is B", True), ("A", False), ("B) London", False), ("A, B", False),
        ("A or B", False), ("London or Paris", False), ("D", False), ("", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("gold", ["B", "Paris"])
def test_multiple_choice(gold: str, answer: str, right: bool) -> None:
    reference = {"type": "multiple_choice", "answer": gold, "choices": ["London", "Paris", "Rome"]}
    assert match(reference, answer).right is right


def test_choices_may_be_named() -> None:
    reference = {"type": "multiple_choice", "answer": "y", "choices": {"x": "London", "y": "Paris"}}
    assert match(reference, "Y: Paris").right


def test_gold_outside_the_choices_is_a_data_error() -> None:
    with pytest.raises(DataError, match="neither a letter nor a text"):
        match({"type": "multiple_choice", "answer": "Z", "choices": ["a"]}, "A")


@pytest.mark.parametrize(
    "answer",
    ["unknown", "Unknown.", "I don't know", "I don’t know.", "i do not know the currency of Chad",
     "The answer is unknown", "不知道", "未知。", "我不知道乍得的货币", "无法确定",
     "cannot be determined"],
)  # fmt: skip
def test_abstentions(answer: str) -> None:
    assert is_abstention(answer)


@pytest.mark.parametrize(
    "answer",
    [None, "", "franc", "I don't know, but maybe franc", "I don't know. Franc", "unknown franc",
     "不知道\uff0c可能是法郎", "不知道\uff01法郎", "The Unknown Soldier", "unknown or franc"],
)  # fmt: skip
def test_no_abstentions(answer: str | None) -> None:
    assert not is_abstention(answer)


def test_unanswerable_gold_is_matched_by_abstention_alone() -> None:
    assert match({"type": "entity", "answer": None}, "unknown").right
    assert not match({"type": "entity", "answer": None}, "franc").right
    assert not match({"type": "entity", "answer": None}, None).right
