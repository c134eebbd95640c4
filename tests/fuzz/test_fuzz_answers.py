"""Whatever a policy answers is right or wrong; it never escapes its score by an exception."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfox.rewards.matchers import is_abstention, match

REFERENCES = {
    "text": "Paris",
    "squad": {"type": "text", "answer": "Paris", "mode": "squad"},
    "entity": {"type": "entity", "answer": "Bosnia and Herzegovina", "aliases": ["Bosnia"]},
    "number": {"type": "number", "answer": "1.5 million", "unit": "people", "tolerance": 0.1},
    "small": {"type": "number", "answer": "1e-50 km"},
    "date": {"type": "date", "answer": "2021-05-03"},
    "boolean": True,
    "choice": {"type": "multiple_choice", "answer": "B", "choices": ["Paris", "Rome"]},
    "list": {"type": "list", "answer": ["Paris", "Bosnia and Herzegovina"]},
    "numbers": {"type": "list", "item_type": "number", "answer": [1, "2 km"]},
    "dates": {"type": "list", "item_type": "date", "answer": ["2021"]},
    "nobody knows": {"type": "text", "answer": None},
}
PIECES = st.sampled_from(
    [
        *(
            "[",
            "]",
            "[" * 3000,
            '"',
            "{",
            "}",
            "(",
            ")",
            ", ",
            ",",
            " and ",
            " or ",
            "; ",
            "\n",
            "- ",
        ),
        *("1", "0", "9" * 30, "1" * 5000, "1,000", "1.000.000", ".", "-", "e", "e9", "e999999999"),
        *(
            "e-999999999",
            "e" + "9" * 5000,
            "亿",
            "万",
            "million ",
            "k",
            "%",
            "$",
            "km",
            "^",
            "²",
            "½",
            "٣",
        ),
        *(
            "2021",
            "2021-05-03",
            "05/03/2021",
            "May ",
            "年",
            "月",
            "日",
            "0000",
            "9999-99-99",
            "T",
            "z",
        ),
        *(
            "yes",
            "no",
            "not ",
            "maybe ",
            "I don't know",
            "unknown",
            "不知道",
            "The answer is ",
            "A) ",
        ),
        *(
            "Paris",
            "Rome",
            "B.",
            "\u3000",
            "\u200b",
            "\ufdfa",
            "\u0301",
            "İ",
            "ß",
            "\ud800",
            "\x00",
        ),
    ]
)
ANSWERS = st.lists(PIECES | st.text(max_size=3), max_size=10).map("".join)


@pytest.mark.parametrize("kind", REFERENCES)
@given(answer=ANSWERS)
def test_any_answer_is_right_or_wrong(kind: str, answer: str):
    found = match(REFERENCES[kind], answer)
    assert found.right in (True, False)
    assert found.why
    assert found == match(REFERENCES[kind], answer)


@given(ANSWERS)
def test_any_answer_abstains_or_does_not(answer: str):
    assert is_abstention(answer) in (True, False)
