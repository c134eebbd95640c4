import gzip
import json

import pytest

from outfox.core.errors import DataError
from outfox.core.lines import lines_of, stem_of
from outfox.worlds.retrieval.corpus import load_corpus
from outfox.worlds.tasks.rows import load_tasks

ROWS = [{"question": "Which river?", "answer": "Rhine", "id": n} for n in range(3)]
TEXT = "\n\n".join(map(json.dumps, ROWS)).encode()


def test_a_gzipped_file_has_the_lines_of_the_plain_one(tmp_path):
    plain, packed = tmp_path / "q.jsonl", tmp_path / "q.jsonl.gz"
    plain.write_bytes(TEXT)
    packed.write_bytes(gzip.compress(TEXT))
    assert list(lines_of(packed)) == list(lines_of(plain))
    assert [number for number, _ in lines_of(packed)] == [1, 3, 5]
    assert stem_of(packed) == stem_of(plain) == "q"
    assert load_tasks(packed) == load_tasks(plain)


@pytest.mark.parametrize("load", [load_tasks, load_corpus])
def test_half_a_file_and_no_gzip_file_are_said(tmp_path, load):
    file = tmp_path / "q.jsonl.gz"
    rows = [{"id": n, "question": "q", "answer": "a", "text": str(n) * 50} for n in range(2000)]
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode())[:-200])
    with pytest.raises(DataError, match=r"q\.jsonl\.gz is no whole gzip file, after line \d+"):
        load(file)
    file.write_bytes(TEXT)
    with pytest.raises(DataError, match="no whole gzip file, after line 0: Not a gzipped file"):
        load(file)
