import json

import pytest

from outfox.core.errors import ConfigError
from outfox.testing.worlds import FakeTool, check_environment, check_task_source
from outfox.worlds.rows import make
from outfox.worlds.world import Supplies


@pytest.fixture
def files(tmp_path):
    tasks, corpus = tmp_path / "quiz.jsonl", tmp_path / "wiki.jsonl"
    rows = [{"question": f"q{n}", "answer": f"a{n}"} for n in range(20)]
    tasks.write_text("\n".join(map(json.dumps, rows)))
    corpus.write_text(json.dumps({"id": "d1", "contents": "Lyon is in France"}))
    return tasks, corpus


async def test_rows_and_corpus_make_a_world(files):
    tasks, corpus = files
    world = make(Supplies(tasks=tasks, corpus=corpus), held_out=0.25)
    assert (world.name, len(world.held_out)) == ("quiz", 5)
    train = {task.task_id for task in world.train.take(0, 15)}
    assert len(train) == 15
    assert not train & {task.task_id for task in world.held_out}
    check_task_source(world.train)
    await check_environment(world.environment, world.held_out[0])


async def test_tools_alone_are_enough(files):
    world = make(Supplies(tasks=files[0], tools=(lambda: FakeTool("look"),)))
    opening = await world.environment(world.held_out[0], 0).reset()
    assert [spec.name for spec in opening.tools] == ["look"]


def test_what_is_missing_is_said(files):
    tasks, corpus = files
    with pytest.raises(ConfigError, match=r"set tasks\.path"):
        make(Supplies(corpus=corpus))
    with pytest.raises(ConfigError, match=r"set corpus\.path or tools"):
        make(Supplies(tasks=tasks))
    with pytest.raises(ConfigError, match="0 of 20 rows is 0"):
        make(Supplies(tasks=tasks, corpus=corpus), held_out=0)
