"""Nothing that a policy or a file writes takes time that grows with the square of its length.

A text eight times as long takes about eight times as long to read, and never 64 times.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from outfox.core.errors import OutfoxError
from outfox.core.yaml import load_yaml
from outfox.policies.codecs import markup
from outfox.policies.codecs.tags import Tags
from outfox.policies.tiny import build_tokenizer
from outfox.rewards.matchers import is_abstention, match

SHORT, LONG = 1_000, 8_000
QUICK = 0.1
"""Seconds of CPU that settle it."""
EVERYTHING = "OUTFOX_TEST_EXAMPLES" in os.environ
TAGS = Tags(build_tokenizer(["Lyon"]), pauses=True)


def spans(text: str) -> object:
    return TAGS.spans(TAGS.encode(text), after_observation=False)


def answered(reference: object) -> Callable[[str], object]:
    return lambda answer: match(reference, answer)


READERS = {
    "parse": markup.parse,
    "escape": markup.escape,
    "citations": markup.split_citations,
    "spans": spans,
    "yaml": load_yaml,
    "abstention": is_abstention,
    "text": answered("Paris"),
    "entity": answered({"type": "entity", "answer": "Paris (France)"}),
    "number": answered({"type": "number", "answer": "4 km"}),
    "date": answered({"type": "date", "answer": "2020-01-02"}),
    "boolean": answered(True),
    "choice": answered({"type": "multiple_choice", "answer": "A", "choices": ["x", "y"]}),
    "list": answered({"type": "list", "answer": ["Bosnia and Herzegovina", "b"]}),
}
UNITS = (
    *(
        " ",
        "\n",
        "<",
        "< ",
        "[",
        "[ ",
        "[a",
        " [a] ",
        "a",
        "a ",
        "é",
        "🦊",
        "e\u0301",
        "1",
        "1,",
        "1.",
    ),
    *("<think>", "</think>", "<think>a</think>", "<answer>", "<answer>x", "</answer>", "</search>"),
    *(
        "<information>",
        "<information ",
        "< information>",
        "[sure",
        "{",
        "- ",
        "a: ",
        "'",
        '"',
        "&a ",
    ),
    *(
        "(",
        "( ",
        "$",
        "-",
        "- ",
        "e1",
        "1,000",
        ", ",
        " and ",
        "a, ",
        ";",
        "、",
        "yes ",
        "not ",
        "or ",
    ),
    *("May ", "2020 ", "the answer is ", "unknown ", "不", "万", "\u200b"),
)
HEADS = ("", "<answer>", "<think><information>", "a", "<", "(", "[", "1")
TAILS = ("", "</answer>", "</think><answer>x</answer>", "x")


TEXTS = [
    (head, unit, TAILS[(number + len(head)) % len(TAILS)])
    for number, unit in enumerate(UNITS)
    for head in (HEADS if unit.isspace() or EVERYTHING else ("", HEADS[number % len(HEADS)]))
]


def seconds(read: Callable[[str], object], text: str) -> float:
    begun = time.process_time()
    with suppress(OutfoxError):
        read(text)
    return time.process_time() - begun


@pytest.mark.parametrize("name", READERS)
def test_eight_times_the_text_takes_no_more_than_some_eight_times_as_long(name: str):
    read = READERS[name]
    for head, unit, tail in TEXTS:
        text = head + unit * (LONG // len(unit)) + tail
        if seconds(read, text) < QUICK:
            continue
        short = head + unit * (SHORT // len(unit)) + tail
        # The best of some, each with a text of its own: nothing may be remembered.
        fast = min(seconds(read, short + " " * extra) for extra in range(1, 4))
        slow = min(seconds(read, text + " " * extra) for extra in range(1, 4))
        what = f"{head!r} + {unit!r} * n + {tail!r}"
        assert slow < 24 * fast or slow < QUICK, f"{what}: {fast:.4f} s, {slow:.4f} s"
