"""Each token gets its own text; together they are the ledger's text."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from outfox.core.ledger import Ledger, Segment
from outfox.store.pieces import Pieces, pieces_by


def ledger(ids):
    return Ledger(segments=(Segment(owner="policy", token_ids=np.asarray(list(ids), np.int64)),))


def by_bytes(ids):
    return bytes(int(i) for i in ids).decode("utf-8", "replace")


def by_words(ids):
    return " ".join(f"w{int(i)}" for i in ids)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\ufffd"), max_size=12))
def test_bytes_of_one_character_belong_to_its_last_token(text):
    pieces = Pieces(by_bytes).of(ledger(text.encode()))
    assert "".join(pieces) == text
    assert len(pieces) == len(text.encode())


def test_spaces_between_words_are_kept():
    assert Pieces(by_words).of(ledger([1, 2, 1])) == ["w1", " w2", " w1"]


def test_bytes_that_are_no_text_do_not_swallow_what_follows():
    pieces = Pieces(by_bytes).of(ledger([0xFF, *b"plain"]))
    assert pieces == ["\ufffd", "p", "l", "a", "i", "n"]


def test_pairs_are_decoded_once():
    seen = []

    def decode(ids):
        seen.append(tuple(int(i) for i in ids))
        return by_words(ids)

    pieces = Pieces(decode)
    for _ in range(5):
        pieces.of(ledger([1, 2, 1, 2]))
    assert sorted(seen) == [(1,), (1,), (1, 2), (2,), (2, 1)]


class Tokenizer:
    def decode(self, ids):
        return by_words(ids)


def test_one_tokenizer_has_one_memory():
    first, second = Tokenizer(), Tokenizer()
    assert pieces_by(first.decode) is pieces_by(first.decode)
    assert pieces_by(first.decode) is not pieces_by(second.decode)
