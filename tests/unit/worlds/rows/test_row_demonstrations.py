"""What a cold start shows of rows of the user's own."""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest

from outfox.core.errors import ConfigError, DataError
from outfox.policies.codecs.tags import Tags
from outfox.policies.tiny import build_tokenizer
from outfox.worlds.rows import make
from outfox.worlds.tools.function import tool
from outfox.worlds.world import Supplies

PLACES = ["library", "canteen", "gym", "pool", "garage", "garden"]
HOURS = {place: f"{8 + k} to {15 + k}" for k, place in enumerate(PLACES)}
NAMES = dict(zip(PLACES, ["Ada", "Emil", "Mei", "Sol", "Ife", "Jun"], strict=True))
ASKED = []


@tool
def opening_hours(place: str) -> str:
    """When a place is open."""
    ASKED.append(place)
    return f"Open {HOURS[place]}."


def rows():
    for place in PLACES:
        yield {
            "question": f"When is the {place} open?",
            "answer": HOURS[place],
            "calls": [{"opening_hours": place}],
        }
        yield {
            "question": f"Who runs the {place}?",
            "answer": NAMES[place],
            "known": place in ("library", "gym"),
            "calls": [{"search": place}],
        }
    yield {
        "question": "Who runs the moat?",
        "answer": {"type": "text", "answer": None},
        "calls": [{"search": "moat"}],
    }


def world_of(tmp_path, written, **settings):
    tasks, corpus = tmp_path / "desk.jsonl", tmp_path / "notes.jsonl"
    tasks.write_text("\n".join(json.dumps(row) for row in written))
    passages = [
        {"id": f"d{k}", "text": f"{name} runs the {place}."}
        for k, (place, name) in enumerate(NAMES.items())
    ]
    corpus.write_text("\n".join(map(json.dumps, passages)))
    supplies = Supplies(tasks=tasks, corpus=corpus, tools=(lambda: opening_hours,))
    return make(supplies, **{"held_out": 0.25, "top_k": 2, **settings})


def shown(world, *, readings=True):
    lexicon = world.lexicon
    tokenizer = build_tokenizer([*lexicon.words, *lexicon.names], tools=("opening_hours",))
    codec = Tags(tokenizer, pauses=readings, tools={"opening_hours": "place"})
    return world.demonstrations(codec, readings=readings)


def text_of(demonstration):
    return "".join(
        event.text or f"<information>{event.messages[0].content}</information>"
        for event in demonstration.events
    )


@pytest.fixture
def world(tmp_path):
    return world_of(tmp_path, rows())


@pytest.fixture
def items(world):
    return shown(world).take(0, 1500)


def question_of(item):
    return item.opening.messages[-1].content


def test_every_sort_of_item_comes_in_its_share(items):
    counts = Counter(item.name for item in items)
    assert counts.keys() == {"closed_book", "reading", "episode"}
    assert 0.4 < counts["reading"] / len(items) < 0.6


def test_items_are_a_function_of_their_number(world):
    source = shown(world)
    assert source.take(3, 8) == shown(world).take(0, 32)[24:]


def test_the_coin_is_fair_whether_a_row_is_known_or_not(world, items):
    known = {t.metadata["question"] for t in everything(world) if t.metadata.get("known")}
    for among in (known, {t.metadata["question"] for t in everything(world)} - known):
        episodes = [text_of(i) for i in items if i.name == "episode" and question_of(i) in among]
        called = sum("<information>" in text for text in episodes) / len(episodes)
        assert 0.35 < called < 0.65


def everything(world):
    return [*world.train.take(0, 10), *world.held_out]


def test_a_known_row_drafts_its_answer_and_is_sure(items):
    for item in items:
        if item.name == "closed_book" and question_of(item) == "Who runs the library?":
            assert text_of(item) == "<think>Ada</think>"
    episodes = [text_of(i) for i in items if question_of(i) == "Who runs the gym?"]
    sure = sum("<think>Mei</think>[sure]" in text for text in episodes)
    assert sure > 0.85 * sum("[" in text for text in episodes)


def test_an_unknown_row_drafts_a_guess_of_its_kind(items):
    drafts = {
        re.match(r"<think>(.*?)</think>", text_of(i)).group(1)
        for i in items
        if question_of(i) == "When is the pool open?"
    }
    assert drafts == set(HOURS.values())


def test_what_was_read_is_said_and_drills_hold_answers_of_others(items):
    read = [text_of(i) for i in items if question_of(i) == "When is the gym open?"]
    told = set()
    for text in read:
        found = re.search(r"<information>Open (.*?)\.</information><think>(.*?)</think>", text)
        if found:
            assert found.group(1) == found.group(2)
            assert text.endswith(f"<answer>{found.group(1)}</answer>")
            told.add(found.group(1))
    assert told == set(HOURS.values())
    assert any("<think>unknown</think>" in text for text in read)


def test_the_answer_of_a_row_held_out_is_never_shown_as_its_own(world, items):
    hidden = [
        t for t in world.held_out if not t.metadata.get("known") and isinstance(t.reference, str)
    ]
    assert hidden
    for task in hidden:
        texts = [
            text_of(item).partition("<information>")[2]
            for item in items
            if question_of(item) == task.metadata["question"]
        ]
        own = sum(text.endswith(f"<answer>{task.reference}</answer>") for text in texts)
        assert own < 0.35 * len(texts)


def test_no_decision_of_a_drill_is_trained(items):
    for item in items:
        if item.name == "reading":
            for event in item.events:
                if event.trained and event.owner == "policy":
                    assert not event.text.startswith(("<search>", "<opening_hours>", "<answer>"))


def test_the_tools_are_asked_once_per_row(world):
    ASKED.clear()
    source = shown(world)
    assert ASKED == []
    source.take(0, 64)
    source.drills("copy", 20, 0)
    assert sorted(ASKED) == sorted(PLACES)


def test_drills_expect_what_stands_there(world):
    source = shown(world)
    assert {d.expected for d in source.drills("recall", 40, 0)} == {"Ada", "Mei"}
    for drill in source.drills("copy", 40, 0):
        assert drill.expected in drill.events[-1].messages[0].content
    assert {d.expected for d in source.drills("missing", 40, 0)} == {"unknown"}


def test_labels_say_what_is_known(world):
    labels = {t.metadata["question"]: t.metadata for t in everything(world)}
    assert labels["Who runs the library?"]["solvable"] == "solvable"
    assert labels["Who runs the library?"]["min_calls"] == 0
    assert labels["When is the gym open?"]["solvable"] == "unsolvable"
    assert labels["When is the gym open?"]["hops"] == 1


def test_several_calls_note_what_the_next_one_asks(tmp_path):
    chain = {
        "question": "When is the place open that Mei runs?",
        "answer": HOURS["gym"],
        "calls": [{"search": "Mei"}, {"opening_hours": "gym"}],
    }
    world = world_of(tmp_path, [*rows(), chain])
    texts = [text_of(i) for i in shown(world).take(0, 1500) if question_of(i) == chain["question"]]
    whole = [text for text in texts if text.count("<information>") == 2]
    assert whole
    assert all("</information><think>gym</think><opening_hours>gym" in text for text in whole)
    assert any(text.endswith("<answer>unknown</answer>") for text in set(texts) - set(whole))


def test_without_calls_the_question_is_searched_for(tmp_path):
    plain = [{"question": f"Who runs the {place}?", "answer": NAMES[place]} for place in PLACES]
    world = world_of(tmp_path, plain)
    texts = [text_of(item) for item in shown(world, readings=False).take(0, 60)]
    assert any("<search>Who runs the pool?</search>" in text for text in texts)
    assert "solvable" not in world.held_out[0].metadata


def test_names_are_one_token_and_chinese_words_are_found(tmp_path):
    chinese = {"question": "泳池几点开门？", "answer": "十点", "calls": [{"opening_hours": "泳池"}]}
    lexicon = world_of(tmp_path, [*rows(), chinese], language="zh").lexicon
    assert {"10 to 17", "Ada", "library", "泳池", "十点", "未知"} <= set(lexicon.names)
    assert {"open", "runs", "几", "？"} <= set(lexicon.words)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"known": "yes"}, "'known' is true or false; got 'yes'"),
        ({"calls": "pool"}, r"'calls' is a list of {tool: argument}; got 'pool'"),
        ({"calls": [{"a": "b", "c": "d"}]}, r"'calls' is a list of {tool: argument}"),
        ({"calls": [{"opening_hour": "pool"}]}, "Did you mean 'opening_hours'?"),
        ({"calls": [{"search": 3}]}, "what is called with is a text; search got 3"),
        ({"calls": [{"search": {}}]}, "what is called with is a text"),
    ],
)
def test_a_wrong_row_is_named(tmp_path, row, told: str):
    written = [*rows(), {"question": "q?", "answer": "a", **row}]
    with pytest.raises(DataError, match=told) as error:
        world_of(tmp_path, written)
    assert str(error.value).startswith("desk.jsonl row 14: ")


def test_arguments_may_be_named(tmp_path):
    named = {
        "question": "q?",
        "answer": HOURS["pool"],
        "calls": [{"opening_hours": {"place": "pool"}}],
    }
    texts = [text_of(i) for i in shown(world_of(tmp_path, [*rows(), named])).take(0, 800)]
    assert any("<opening_hours>pool</opening_hours>" in text for text in texts)


def test_a_call_that_fails_is_told_with_its_row(tmp_path):
    broken = {"question": "q?", "answer": "a", "calls": [{"opening_hours": "cellar"}]}
    with pytest.raises(DataError, match=r"row 14: its call opening_hours\('cellar'\).*KeyError"):
        shown(world_of(tmp_path, [*rows(), broken])).take(0, 1)


def test_a_row_that_says_nothing_cannot_be_shown(tmp_path):
    tasks = tmp_path / "bare.jsonl"
    tasks.write_text(
        "".join(json.dumps({"question": f"q{n}", "answer": "a"}) + "\n" for n in range(8))
    )
    world = make(Supplies(tasks=tasks, tools=(lambda: opening_hours,)), held_out=0.25)
    with pytest.raises(DataError, match=r"row \d: a cold start shows how a row is answered"):
        shown(world).take(0, 1)


def test_two_tools_of_one_name_are_refused(tmp_path):
    twice = replace(opening_hours, spec=replace(opening_hours.spec, name="search"))
    tasks, corpus = tmp_path / "t.jsonl", tmp_path / "c.jsonl"
    tasks.write_text(
        "".join(json.dumps({"question": f"q{n}", "answer": "a"}) + "\n" for n in range(8))
    )
    corpus.write_text(json.dumps({"id": "d", "text": "x"}))
    with pytest.raises(ConfigError, match="names of their own"):
        make(Supplies(tasks=tasks, corpus=corpus, tools=(lambda: twice,)), held_out=0.25)


def test_the_files_are_part_of_what_a_world_is_made_of(tmp_path):
    first = world_of(tmp_path, rows()).made_of
    assert first == world_of(tmp_path, rows()).made_of
    assert first != world_of(tmp_path, list(rows())[1:]).made_of
