"""Any text survives the tiny tokenizer exactly."""

from hypothesis import given
from hypothesis import strategies as st

from outfox.policies.tiny import SPECIAL, build_tokenizer

TOKENIZER = build_tokenizer(["New York City", "Paris", "Guinea (Bissau)", "巴黎", "法国", "T恤"])
PIECES = [
    *SPECIAL,
    "Paris",
    "巴黎",
    "New York City",
    "T恤",
    " ",
    "  ",
    "\n",
    "(",
    "[",
    ":",
    "<0x41>",
]


@given(st.text() | st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join))
def test_encode_then_decode_is_exact(text: str):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text
