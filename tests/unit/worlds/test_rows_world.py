import json
import re

import pytest

from outfox.core.errors import ConfigError, DataError
from outfox.policies.codecs.tags import Tags
from outfox.policies.tiny import build_tokenizer
from outfox.testing.worlds import FakeTool, check_environment, check_task_source
from outfox.worlds.rows import make
from outfox.worlds.tasks.formats.easyr1 import part
from outfox.worlds.world import Supplies


def demonstrations(world):
    lexicon = world.lexicon
    return world.demonstrations(Tags(build_tokenizer((*lexicon.words, *lexicon.names))))


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


def test_rows_of_another_system_are_asked_and_searched_by_their_question(files, tmp_path):
    tasks = tmp_path / "search.jsonl"
    rows = [
        {
            "prompt": [{"role": "user", "content": f"Use <search>. Question: q{n}?"}],
            "reward_model": {"ground_truth": {"target": [f"a{n}"]}},
            "extra_info": {"question": f"q{n}?"},
        }
        for n in range(4)
    ]
    tasks.write_text("\n".join(map(json.dumps, rows)))
    world = make(Supplies(tasks=tasks, corpus=files[1]), held_out=0.25)
    (held,) = world.held_out
    assert held.prompt[0].content == f"Use <search>. Question: {held.metadata['question']}"
    assert held.reference["answer"] == held.metadata["question"].replace("q", "a").rstrip("?")
    shown = demonstrations(world).take(0, 20)
    written = " ".join(event.text for each in shown for event in each.events)
    queries = re.findall(r"<search>(.*?)</search>", written)
    assert queries
    assert all(re.fullmatch(r"q\d\?", query.replace(" ", "")) for query in queries), queries


def test_a_cold_start_needs_golds_that_can_be_written(files, tmp_path):
    tasks = tmp_path / "countdown.jsonl"
    row = {"prompt": "24?", "reward_model": {"ground_truth": {"target": 24, "numbers": [4, 6]}}}
    tasks.write_text("\n".join([json.dumps(row)] * 4))
    world = make(Supplies(tasks=tasks, corpus=files[1]), held_out=0.25)
    with pytest.raises(DataError, match=r"row \d: a cold start .* none that can be written"):
        demonstrations(world).take(0, 1)


def test_another_format_makes_another_cold_start(files):
    tasks, corpus = files
    template = tasks.with_suffix(".jinja")
    template.write_text("{{ content }} Be brief.")
    settings = {"prompt_key": "question", "answer_key": "answer"}
    one = make(Supplies(tasks=tasks, corpus=corpus))
    other = make(
        Supplies(tasks=tasks, corpus=corpus, format=part(**settings, format_prompt=template))
    )
    assert one.made_of == make(Supplies(tasks=tasks, corpus=corpus)).made_of
    assert one.made_of != other.made_of
