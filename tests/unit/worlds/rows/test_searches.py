"""Scripted searches: what they show, and that a reader could have done the same."""

import json

import pytest

from outfox.core.errors import ConfigError, DataError
from outfox.learning.batching.samples import demonstration_sample
from outfox.policies.codecs.tags import Tags
from outfox.testing.codecs import FakeTokenizer
from outfox.worlds.rows import make
from outfox.worlds.world import Supplies

CORPUS = [
    {"id": "j2", "title": "Jaws 2", "text": "Jaws 2 was directed by Jeannot Szwarc."},
    {"id": "j1", "title": "Jaws (film)", "text": "A shark film. Its sequel is Jaws 2."},
    {"id": "sz", "title": "Jeannot Szwarc", "text": "He was born in Paris in 1939."},
    {"id": "li", "title": "Lima", "text": "Lima is the capital of Peru."},
    {"id": "ar", "title": "Arica", "text": "Arica is a port of Chile."},
    {"id": "pe", "title": "Peru", "text": "Peru lies on the Pacific."},
]


def row(question, answer, gold, **more):
    return {"question": question, "answer": answer, "gold_evidence": gold, **more}


ROWS = [
    row("Who directed the shark film's sequel?", ["Szwarc", "Jeannot Szwarc"], ["j1", "j2"]),
    row("What is the capital of Peru?", "Lima", ["li"]),
    row("Is Arica, the port, Peruvian, or of Peru?", ["no"], ["ar", "pe"]),
    row("Which mountain is highest?", "Everest", ["li"]),  # No passage says so.
    row("Is Lima a <search>?", "Lima", ["li"]),  # The codec cannot write its question.
]
CODEC = Tags(FakeTokenizer())


@pytest.fixture
def world(tmp_path):
    # Held out: one of the rows that nobody can answer.
    rows = [*ROWS, row("Held out?", "nothing", ["held"])]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, CORPUS)))
    supplies = Supplies(tasks=tmp_path / "q.jsonl", corpus=tmp_path / "p.jsonl")

    def made(**settings):
        for seed in range(60):
            world = make(supplies, seed=seed, held_out=0.17, top_k=1, show_ids=False,
                         show_titles=True, teach="searches", **settings)  # fmt: skip
            if world.held_out[0].metadata["question"] == "Held out?":
                return world
        raise AssertionError("no seed holds that row out")

    return made


def texts(world, count):
    return [
        "".join(
            f"<{event.messages[0].content}>" if event.messages else event.text
            for event in item.events
        )
        for item in world.demonstrations(CODEC).take(0, count)
    ]


def test_a_question_a_title_that_was_read_and_the_answer(world):
    assert set(texts(world(), 3)) == {
        "<think>I look it up.</think><search>Who directed the shark film's sequel?</search>"
        "<Jaws (film): A shark film. Its sequel is Jaws 2.>"
        "<think>Next: Jaws 2.</think><search>Jaws 2</search>"
        "<Jaws 2: Jaws 2 was directed by Jeannot Szwarc.>"
        "<think>Jaws 2 says it.</think><answer>Szwarc</answer>",
        "<think>I look it up.</think><search>What is the capital of Peru?</search>"
        "<Lima: Lima is the capital of Peru.>"
        "<think>Lima says it.</think><answer>Lima</answer>",
        "<think>I look it up.</think><search>Is Arica, the port, Peruvian, or of Peru?</search>"
        "<Arica: Arica is a port of Chile.>"
        "<think>Next: Peru.</think><search>Peru</search>"
        "<Peru: Peru lies on the Pacific.>"
        "<think>Peru says it.</think><answer>no</answer>",
    }


def test_what_can_be_shown_comes_again_in_the_same_order(world):
    source = world().demonstrations(CODEC)
    assert source.take(0, 7)[3:6] == source.take(0, 3) == source.take(1, 3)
    assert world().demonstrations(CODEC).take(2, 2) == source.take(2, 2)
    assert source.drills("found", 3, 0) == ()


def test_only_what_the_policy_writes_is_trained(world):
    for item in world().demonstrations(CODEC).take(0, 3):
        sample = demonstration_sample(item, CODEC)
        trained = CODEC.decode(sample.token_ids[sample.loss_mask])
        assert trained == "".join(event.text for event in item.events)
        assert "Lima is the capital" not in trained


def test_rows_that_no_passage_answers_are_told(tmp_path, world):
    (tmp_path / "p.jsonl").write_text(json.dumps({"id": "x", "text": "nothing at all"}))
    tasks = tmp_path / "q.jsonl"
    rows = [row("Which?", "Lima", ["li"]), row("What?", "Rome", ["ro"])]
    tasks.write_text("\n".join(map(json.dumps, rows)))
    supplies = Supplies(tasks=tasks, corpus=tmp_path / "p.jsonl")
    source = make(supplies, held_out=0.5, teach="searches").demonstrations(CODEC)
    with pytest.raises(DataError, match="a scripted search answers no row"):
        source.take(0, 1)


def test_searches_need_passages(tmp_path, world):
    with pytest.raises(ConfigError, match=r"world\.teach=searches needs passages"):
        make(Supplies(tasks=tmp_path / "q.jsonl", tools=(object,)), teach="searches")  # type: ignore[arg-type]


def test_grounding_can_be_asked_of_all_rows(world):
    assert world().held_out[0].metadata.get("must_ground") is None
    assert world(must_ground=True).held_out[0].metadata["must_ground"] is True
