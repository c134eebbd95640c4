"""Rows mean the same from memory, JSON lines and Parquet, and a stored task is the same."""

import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from outfox.core.types import Task
from outfox.store.payload import dumps, from_json, to_json
from outfox.worlds.tasks.rows import load_tasks, tasks_from_rows

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
SAID = TEXT.filter(str.strip)
LONG = SAID.map(lambda text: text * 500)
CHAT = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant"]), "content": TEXT}
)
ROW = st.fixed_dictionaries(
    {
        "prompt": SAID | LONG | st.lists(CHAT, min_size=1, max_size=3),
        "answer": SAID | st.lists(SAID, min_size=1, max_size=3),
        "note": st.none() | TEXT,
        "level": st.none() | st.integers(-(2**63), 2**63 - 1),
        "share": st.none() | st.floats(),
        "tags": st.none() | st.lists(st.none() | TEXT, max_size=3),
        "more": st.none() | st.fixed_dictionaries({"a": st.none() | TEXT, "b": st.booleans()}),
    }
)
MESSAGES = pa.list_(pa.struct({"role": pa.string(), "content": pa.string()}))
COLUMNS = {
    "note": pa.string(),
    "level": pa.int64(),
    "share": pa.float64(),
    "tags": pa.list_(pa.string()),
    "more": pa.struct({"a": pa.string(), "b": pa.bool_()}),
}


@given(ROW)
def test_a_row_is_the_same_task_from_everywhere(row: dict):
    types = {
        "prompt": pa.string() if isinstance(row["prompt"], str) else MESSAGES,
        "answer": pa.string() if isinstance(row["answer"], str) else pa.list_(pa.string()),
        **COLUMNS,
    }
    with tempfile.TemporaryDirectory() as folder:
        lines, table = Path(folder) / "rows.jsonl", Path(folder) / "rows.parquet"
        lines.write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
        schema = pa.schema({name: types[name] for name in row})
        pq.write_table(pa.Table.from_pylist([row], schema=schema), table)
        (one,), (two,), (three,) = tasks_from_rows([row]), load_tasks(lines), load_tasks(table)
    assert stored(one) == stored(two) == stored(three)
    assert stored(from_json(Task, json.loads(dumps(to_json(one))))) == stored(one)


def stored(task: Task) -> str:
    """As text, since NaN is not equal to itself; the order of keys means nothing."""
    return json.dumps(to_json(task), sort_keys=True)
