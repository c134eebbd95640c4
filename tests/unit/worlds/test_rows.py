import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from outfox.core.errors import DataError
from outfox.testing.worlds import fake_task
from outfox.worlds.tasks.rows import RowTasks, load_tasks, tasks_from_rows


def test_columns_become_a_task_and_the_rest_is_kept():
    row = {"id": 4, "question": "Who?", "answer": "Ada", "split": "dev", "metadata": {"kind": "x"}}
    [task] = tasks_from_rows([row])
    assert (task.task_id, task.prompt[0].content, task.reference) == ("4", "Who?", "Ada")
    assert task.metadata == {"split": "dev", "kind": "x", "question": "Who?"}


def test_chat_prompts_and_fallback_ids():
    prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]
    rows = [{"prompt": prompt, "reference": {"type": "text", "answer": None}}] * 2
    first, second = tasks_from_rows(rows, name="dev")
    assert [(m.role, m.content) for m in first.prompt][1] == ("user", "Who?")
    assert (first.task_id, second.task_id) == ("dev-1", "dev-2")
    assert first.reference == {"type": "text", "answer": None}


def test_json_lines_and_parquet_give_the_same_tasks(tmp_path):
    rows = [{"question": f"q{n}", "answer": ["a", "b"], "level": n} for n in range(3)]
    lines = tmp_path / "dev.jsonl"
    lines.write_text("\n".join(map(json.dumps, rows)))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "dev.parquet")
    assert load_tasks(lines) == load_tasks(tmp_path / "dev.parquet")
    assert load_tasks(lines)[0].reference == {"type": "text", "answer": "a", "aliases": ["b"]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"answer": "x"}, "row 2: the column 'prompt' or 'question' is missing; found: answer"),
        ({"question": "x"}, "row 2: the column 'reference' or 'answer' is missing"),
        ({"question": "", "answer": "x"}, "row 2: 'prompt' is a text"),
        ({"prompt": [{"role": "bot", "content": "x"}], "answer": "x"}, "row 2: a chat message"),
        ({"question": "x", "answer": "x", "metadata": 3}, "row 2: 'metadata' is an object"),
        (5, "row 2: every row is a JSON object"),
    ],
)
def test_a_bad_row_is_named(row, message):
    with pytest.raises(DataError, match=message):
        tasks_from_rows([{"question": "q", "answer": "a"}, row])


def test_files_that_hold_nothing_are_refused(tmp_path):
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    with pytest.raises(DataError, match="at least one row"):
        load_tasks(empty)
    with pytest.raises(DataError, match=r"check tasks\.path"):
        load_tasks(tmp_path / "none.jsonl")
    empty.write_text("{")
    with pytest.raises(DataError, match="empty row 1: every row is a JSON object"):
        load_tasks(empty)


def test_every_task_comes_once_per_epoch_in_an_order_of_its_own():
    source = RowTasks([fake_task(n) for n in range(10)], seed=3)
    epochs = [[t.task_id for t in source.take(step, 10)] for step in range(3)]
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    across = [t.task_id for step in range(6) for t in source.take(step, 5)]
    assert across == [name for epoch in epochs for name in epoch]


def test_taking_is_pure_and_seeded():
    tasks = [fake_task(n) for n in range(10)]
    source, other = RowTasks(tasks, seed=3), RowTasks(tasks, seed=4)
    late = source.take(7, 4)
    assert source.take(0, 4) != late
    assert source.take(7, 4) == late == RowTasks(tasks, seed=3).take(7, 4)
    assert other.take(7, 4) != late


def test_no_tasks_or_shared_ids_are_refused():
    with pytest.raises(DataError, match="at least one task"):
        RowTasks([])
    with pytest.raises(DataError, match="tasks 1 and 3 share the id 'task-0'"):
        RowTasks([fake_task(0), fake_task(1), fake_task(0)])


@pytest.mark.parametrize(
    ("gold", "kept"),
    [
        (5, {"type": "number", "answer": "5"}),
        (1.5, {"type": "number", "answer": "1.5"}),
        (True, {"type": "boolean", "answer": True}),
        (np.int64(5), {"type": "number", "answer": "5"}),
        (np.array(["a", "b"]), {"type": "text", "answer": "a", "aliases": ["b"]}),
    ],
)
def test_golds_that_need_a_type_get_one(gold, kept):
    [task] = tasks_from_rows([{"question": "q", "answer": gold}])
    assert task.reference == kept
