"""Whatever a file of rows or documents holds: tasks that can be played and stored, or a DataError
that names the row or the file."""

import dataclasses
import datetime
import decimal
import json
import re
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from outfox.core.errors import DataError
from outfox.core.types import Document, Message, ParseError, Task
from outfox.policies.chat import read_message
from outfox.store.files import read_lines
from outfox.store.payload import dumps, to_json
from outfox.worlds.retrieval.bm25 import BM25
from outfox.worlds.retrieval.corpus import load_corpus
from outfox.worlds.rows.shown import read_row as read_shown
from outfox.worlds.tasks.formats.auto import AnyRows
from outfox.worlds.tasks.formats.easyr1 import easyr1
from outfox.worlds.tasks.formats.rows import OwnRows
from outfox.worlds.tasks.formats.trl import TrlRows
from outfox.worlds.tasks.formats.verl import VerlRows
from outfox.worlds.tasks.rows import load_tasks, tasks_from_rows
from outfox.worlds.tools.search import SearchTool

FORMATS = st.sampled_from(
    [AnyRows(), OwnRows(), VerlRows(), TrlRows(), TrlRows(answer_key="gold"), easyr1()]
)
TEXT = st.text(max_size=6) | st.sampled_from(["Paris", "\ud800", "\x00", " ", "法国🦊", "\u2028"])
COLUMNS = st.sampled_from(
    [
        *("prompt", "question", "answer", "reference", "reward_model", "extra_info", "data_source"),
        *(
            "solution",
            "ground_truth",
            "id",
            "metadata",
            "images",
            "known",
            "calls",
            "gold",
            "\ud800",
        ),
    ]
)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
GOLDS = st.fixed_dictionaries(
    {"answer": PLAIN},
    optional={
        "type": st.sampled_from(
            ["text", "number", "date", "list", "boolean", "multiple_choice", "entity", "x"]
        ),
        "aliases": PLAIN | st.lists(PLAIN, max_size=2),
        "choices": PLAIN | st.lists(PLAIN, max_size=2),
        "tolerance": PLAIN,
        "unit": PLAIN,
        "item_type": PLAIN,
        "mode": PLAIN,
        "target": PLAIN,
    },
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system", "tool", "x"]) | PLAIN},
        optional={"content": TEXT | PLAIN},
    ),
    max_size=3,
)
MODEL = st.fixed_dictionaries({}, optional={"style": PLAIN, "ground_truth": PLAIN | GOLDS})
JSON = st.recursive(
    PLAIN | GOLDS | MESSAGES | MODEL,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
OTHERS = st.sampled_from(
    [
        *(b"x", bytearray(b"y"), {1, 2}, 1j, datetime.date(1, 1, 1), datetime.timedelta(days=1)),
        *(datetime.datetime.max, datetime.time(1), decimal.Decimal("NaN"), decimal.Decimal("sNaN")),
        *(decimal.Decimal("Infinity"), decimal.Decimal("1e999999"), decimal.Decimal("1.5")),
        *(
            np.float32("nan"),
            np.int8(3),
            np.datetime64("2020-01-01"),
            np.longdouble(1),
            np.bool_(1),
        ),
        *(
            np.array([["a"]]),
            np.array([1, None], object),
            np.str_("\ud800"),
            np.bytes_(b"x"),
            object,
        ),
        *(json.loads("[" * 300 + "]" * 300), "9" * 5000, (1, ("a",)), {1: 2, None: 3}),
    ]
)


def usable(tasks: tuple[Task, ...]) -> None:
    """Each can be shown to a policy, and stored."""
    for task in tasks:
        assert task.prompt
        assert task.task_id.encode()
        assert all(message.content.encode() for message in task.prompt if message.content)
        assert json.loads(dumps(to_json(task)).encode())["task_id"] == task.task_id
        with_calls(task)


def with_calls(task: Task) -> None:
    tools = [SearchTool(BM25([Document(id="a", text="b")])).spec]
    try:
        read_shown(task, "x row 1", tools, unknown="unknown")
    except DataError as error:
        told(error)


def told(error: DataError, names: str = r" row \d+") -> None:
    text = str(error)
    assert re.search(names, text), text
    assert text.encode()
    assert len(text) < 5000


ROWS = st.dictionaries(COLUMNS, JSON, max_size=5)


@given(st.lists(ROWS | st.dictionaries(COLUMNS, OTHERS | JSON, max_size=4), max_size=3), FORMATS)
def test_any_rows_in_memory_are_tasks_or_refused(rows: list, read):
    try:
        tasks = tasks_from_rows(rows, name="mine", read=read)
    except DataError as error:
        told(error, "mine")
    else:
        usable(tasks)
        assert len(tasks) == len(rows)


LINES = st.one_of(
    ROWS.map(lambda row: json.dumps(row).encode()),
    st.binary(max_size=20),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(
        [
            *(
                b"[" * 5000,
                b'{"a":' * 2000,
                b"9" * 5000,
                b'{"question": ' + b"1" * 5000 + b"}",
                b"NaN",
            ),
            *(
                b"\xff",
                b"\xef\xbb\xbf{}",
                b'{"question": "q", "answer": "a"}',
                b"\x00",
                b"{}\r",
                b"",
            ),
            *('{"question": "q", "answer": "é"}'.encode("utf-16"), b'{"question": "\\ud800"}'),
        ]
    ),
)
FILES = st.lists(LINES, max_size=4).map(b"\n".join)


def written(content: bytes, name: str, folder: str) -> Path:
    path = Path(folder) / name
    path.write_bytes(content)
    return path


@given(FILES, FORMATS)
def test_any_json_lines_are_tasks_or_refused(content: bytes, read):
    with tempfile.TemporaryDirectory() as folder:
        try:
            usable(load_tasks(written(content, "mine.jsonl", folder), read))
        except DataError as error:
            told(error, "mine")


DOCUMENTS = st.dictionaries(
    st.sampled_from(["id", "title", "text", "contents", "source", "date"]), PLAIN, max_size=5
)


@given(st.lists(LINES | DOCUMENTS.map(lambda row: json.dumps(row).encode()), max_size=3))
def test_any_json_lines_are_documents_or_refused(lines: list[bytes]):
    with tempfile.TemporaryDirectory() as folder:
        try:
            documents = load_corpus(written(b"\n".join(lines), "mine.jsonl", folder))
        except DataError as error:
            told(error, "mine")
            return
    assert BM25(documents).search(["Paris"], 2)
    assert all(document.hash for document in documents)
    assert all(dumps(to_json(document)).encode() for document in documents)


@given(FILES)
def test_any_lines_of_a_run_folder_are_objects_or_refused(content: bytes):
    with tempfile.TemporaryDirectory() as folder:
        try:
            rows = read_lines(written(content, "mine.jsonl", folder))
        except DataError as error:
            told(error, r"mine.jsonl:\d+")
        else:
            assert all(isinstance(row, dict) for row in rows)


NUMBERS = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2)
VIEWS = st.sampled_from(
    [
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        *(pa.timestamp("ns", "Europe/Paris"), pa.duration("s"), pa.duration("ns"), pa.time64("ns")),
        *(pa.date64(), pa.uint64(), pa.float64()),
    ]
)
BINARIES = st.lists(st.none() | st.binary(max_size=6), min_size=2, max_size=2).map(pa.array)
TYPED = st.one_of(
    st.tuples(NUMBERS, VIEWS).map(lambda made: pa.array(made[0], pa.int64()).view(made[1])),
    BINARIES,
    BINARIES.map(lambda made: made.cast(pa.binary()).view(pa.string())),
    BINARIES.map(lambda made: made.cast(pa.binary()).dictionary_encode()),
    st.lists(st.none() | st.decimals(-(10**20), 10**20, places=5), min_size=2, max_size=2).map(
        lambda made: pa.array(made, pa.decimal256(76, 5))
    ),
    st.lists(st.lists(st.tuples(TEXT, PLAIN), max_size=2), min_size=2, max_size=2).map(
        lambda made: pa.array(
            [[(_utf8(k), _utf8(str(v))) for k, v in row] for row in made],
            pa.map_(pa.string(), pa.string()),
        )
    ),
    st.just(pa.array([(1, 2, 3), None], pa.month_day_nano_interval())),
    st.lists(JSON.map(lambda value: _utf8(json.dumps(value))), min_size=2, max_size=2).map(
        pa.array
    ),
    st.sampled_from(
        [
            pa.array([[{"role": "user", "content": "q"}], None]),
            pa.array([{"style": "rule", "ground_truth": {"target": ["a"]}}] * 2),
            pa.array([{"ground_truth": None}, {"ground_truth": "a"}]),
            pa.array(["q", "q"], pa.large_string()),
            pa.array([1.5, float("nan")], pa.float16()),
            pa.nulls(2),
        ]
    ),
)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


TABLES = st.dictionaries(COLUMNS.filter(str.isascii), TYPED, min_size=1, max_size=5).map(
    lambda columns: pa.table({**columns})
)


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


@given(TABLES, FORMATS)
def test_any_parquet_holds_tasks_or_is_refused(table: pa.Table, read):
    try:
        content = parquet(table)
    except (pa.ArrowException, ValueError):
        return  # No Parquet file can hold it.
    with tempfile.TemporaryDirectory() as folder:
        try:
            usable(load_tasks(written(content, "mine.parquet", folder), read))
        except DataError as error:
            told(error, "mine")


WHOLE = parquet(pa.table({"question": ["q", "r"], "answer": ["a", "b"], "n": [1, 2]}))


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=3), st.booleans())
def test_a_damaged_parquet_file_is_read_or_refused(place: int, damage: bytes, cut: bool):
    content = WHOLE[:place] + damage + (b"" if cut else WHOLE[place + len(damage) :])
    with tempfile.TemporaryDirectory() as folder:
        try:
            usable(load_tasks(written(content, "mine.parquet", folder)))
        except DataError as error:
            told(error, "mine")


CALLS = st.fixed_dictionaries(
    {},
    optional={
        "id": PLAIN,
        "function": PLAIN
        | st.fixed_dictionaries(
            {},
            optional={
                "name": PLAIN,
                "arguments": PLAIN
                | JSON.map(json.dumps)
                | st.sampled_from(["[" * 5000, "9" * 5000]),
            },
        ),
    },
)


@given(st.fixed_dictionaries({}, optional={"content": JSON, "tool_calls": JSON | st.lists(CALLS)}))
def test_any_body_of_a_chat_server_is_a_message_or_a_parse_error(body: dict):
    read = read_message(body)
    if isinstance(read, Message):
        assert all(isinstance(call.arguments, dict) for call in read.tool_calls)
        assert isinstance(read.content, str)
    else:
        assert isinstance(read, ParseError)
        assert len(dataclasses.asdict(read)["message"]) < 1000
