import json

import pytest

from outfox.core.errors import DataError
from outfox.worlds.retrieval.corpus import load_corpus


def write(path, *rows):
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows))
    return path


def test_both_layouts_are_read(tmp_path):
    path = write(
        tmp_path / "wiki.jsonl",
        {"id": 7, "contents": '"Lima"\nLima is the capital of Peru.'},
        "",
        {"id": "b", "title": "Quito", "text": "A city.", "date": "2020-01-01"},
        {"id": "c", "contents": "no title"},
    )
    lima, quito, bare = load_corpus(path)
    assert (lima.id, lima.title, lima.text) == ("7", "Lima", "Lima is the capital of Peru.")
    assert (quito.title, quito.date, quito.source) == ("Quito", "2020-01-01", "wiki")
    assert (bare.title, bare.text, bare.date) == ("", "no title", None)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"contents": "x"}, "row 2: the column 'id' is missing"),
        ({"id": "b"}, "row 2: the column 'contents'"),
        ({"id": "b", "text": "  "}, "row 2: the column 'contents'"),
        ({"id": "b", "contents": 5}, "row 2: the column 'contents'"),
        ({"id": "a", "contents": "again"}, "row 2: the id 'a' is taken"),
        ("[1]", "row 2: every row is a JSON object; found list"),
        ("{", "row 2: every row is a JSON object"),
    ],
)
def test_a_bad_row_is_named(tmp_path, row, message):
    path = write(tmp_path / "corpus.jsonl", {"id": "a", "contents": "x"}, row)
    with pytest.raises(DataError, match=message):
        load_corpus(path)


def test_an_empty_or_missing_corpus_is_refused(tmp_path):
    with pytest.raises(DataError, match="at least one document"):
        load_corpus(write(tmp_path / "empty.jsonl", ""))
    with pytest.raises(DataError, match=r"check corpus\.path"):
        load_corpus(tmp_path / "none.jsonl")
