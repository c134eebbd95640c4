from __future__ import annotations

import pytest

from outfox.rewards.matchers import match
from outfox.rewards.matchers.normalise import contains, squad, unicode


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("The  Beatles!", "beatles"),
        ("a cat", "cat"),
        ("A shares", "a shares"),
        ("Class A shares", "class a shares"),
        ("Jean-Luc", "jean luc"),
        ("Rock’n’Roll", "rocknroll"),
        ("−2.4 %", "-2.4 %"),
        ("10–15", "10-15"),
        ("1,234,567", "1234567"),
        ("1,5", "1,5"),
        ("12", "12"),
        ("北京 大学。", "北京大学"),
        ("STRASSE ß", "strasse ss"),
        ("C++ & C#", "c++ & c#"),
        ("The", ""),
        ("!!!", ""),
        ("3 - 2", "3 2"),
    ],
)
def test_unicode_key(text: str, key: str) -> None:
    assert unicode(text) == key


def test_squad_key_is_that_of_the_papers() -> None:
    assert squad("The U.S.A., a land (of -2.4%)") == "usa land of 24"


def test_squad_mode_compares_as_the_papers_do() -> None:
    strict = {"type": "text", "answer": "Hepatitis A", "mode": "squad"}
    assert match(strict, "hepatitis").right
    assert not match({**strict, "mode": "unicode"}, "hepatitis").right


@pytest.mark.parametrize(
    "answer", ["The answer is Paris.", "answer: paris", "It's Paris", "**Paris**"]
)
def test_lead_ins_and_markdown_say_nothing(answer: str) -> None:
    assert match("Paris", answer).right


def test_chinese_lead_in() -> None:
    assert match("巴黎", "答案是\uff1a巴黎。").right


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("It is not Paris", "negated"),
        ("maybe Paris", "hedged"),
        ("Paris or Lyon", "several"),
        ("<answer>Paris</answer>", "tags"),
        ("Lyon", "'lyon' is not the gold"),
    ],
)
def test_why_says_what_was_wrong(answer: str, why: str) -> None:
    found = match("Paris", answer)
    assert not found.right
    assert why in found.why


def test_gold_with_or_in_it_matches_itself() -> None:
    assert match("Trial or Error", "trial or error").right


@pytest.mark.parametrize(
    ("text", "form", "there"),
    [
        ("The capital of Chad is N'Djamena.", "N’Djamena", True),
        ("Chad's capital", "Chad", True),
        ("McDonald's opened", "McDonald's", True),
        ("Chadwick was born", "Chad", False),
        ("货币是欧元。", "欧元", True),
        ("货币是Euro。", "euro", True),
        ("about -15 degrees", "15", False),
        ("about 1.5 degrees", "5", False),
        ("15% of it", "15", False),
        ("Paris", "", False),
        ("Paris", "The", False),
    ],
)
def test_contains_whole_words_only(text: str, form: str, there: bool) -> None:
    assert contains(text, form) is there


@pytest.mark.parametrize(
    "answer",
    ["Myanmar", "burma", "Myanmar (Burma)", "Myanmar\uff08Burma\uff09", "The Union of Myanmar"],
)
def test_entity_by_any_of_its_names(answer: str) -> None:
    gold = {"type": "entity", "answer": "Myanmar", "aliases": ["Burma", "Union of Myanmar"]}
    assert match(gold, answer).right
    assert not match(gold, "Myanmar (Siam)").right


def test_aliases_count_for_text_too() -> None:
    assert match({"answer": "New York City", "aliases": ["NYC"]}, "nyc").right
