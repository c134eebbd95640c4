"""The report is made from the run folder alone, whatever it holds; foreign text stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from outfox.core.results import Score, ScoredGroup, SignalError, TrajectoryCredit, Value
from outfox.core.types import Document, Group, Message, Task
from outfox.store.run_folder import RunFolder
from outfox.testing.run import made_up_run
from outfox.testing.store import Move, Words, made_up
from outfox.workbench.report import write_report
from outfox.workbench.report.findings import MEASURES
from outfox.workbench.report.stories import stories

VOID = {"meta", "path", "polygon"}
EVIL = "<script>steal()</script><img src=x onerror=steal()> \"quoted\" & '单'"


class Strict(HTMLParser):
    """Refuses tags that do not close in order; keeps attributes and text."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        self.text.append(data)


def read(run, **settings):
    page = Strict()
    page.feed(write_report(run, **settings).read_text(encoding="utf-8"))
    assert page.open == []
    return page, "".join(page.text)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return made_up_run(tmp_path_factory.mktemp("runs") / "run", steps=30, questions=96)


def test_page_is_whole_and_needs_nothing_but_itself(finished):
    page, text = read(finished)
    names = {name for name, _ in page.attributes}
    assert not names & {"src", "href", "onerror", "onclick"}
    raw = (finished.path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|@import|url\(", raw)
    assert page.tags.count("svg") == 8
    assert page.tags.count("article") == 6
    assert "{{" not in raw
    assert all(name in text for name, _ in MEASURES.values())
    assert "seed: 0" in text


def test_same_folder_same_page(finished):
    first = write_report(finished).read_bytes()
    assert write_report(finished).read_bytes() == first


def test_headline_and_kinds_are_those_of_the_summary(finished):
    _, text = read(finished)
    summary = finished.summary()
    for block in (summary["before"], summary["after"]):
        assert f"{100 * block['accuracy']:.0f}\u2009%" in text
    for kind, measured in summary["after"]["by_kind"].items():
        assert kind in text
        assert f"{100 * measured['accuracy']:.0f}\u2009%" in text


def test_tokens_carry_owner_probability_and_advantage(finished):
    page, text = read(finished)
    tips = [value for name, value in page.attributes if name == "data-t"]
    assert any(
        re.fullmatch(r"policy · decision · p [\d.]+ · advantage [+−]?[\d.]+", t) for t in tips
    )
    assert "environment" in tips
    assert "prompt" in tips
    assert "[unsure]" in text


def scored(name="one", *, moves, outcome="right", total=1.0, **labels):
    task = Task(
        task_id=name,
        prompt=(Message(role="user", content=EVIL),),
        reference=EVIL,
        metadata={"kind": EVIL, "question": EVIL, **labels},
    )
    words = Words()
    trajectory = made_up(task, moves, words=words)
    score = Score(
        total=total,
        outcome=outcome,
        gate=EVIL if outcome == "gated" else None,
        results={EVIL: Value(value=1, why=EVIL), "judge": SignalError(why=EVIL)},
        parts={EVIL: 1.0},
    )
    group = Group(group_id=trajectory.group_id, trajectories=(trajectory,))
    return ScoredGroup(group=group, scores=(score,)), words


def test_nothing_from_outside_becomes_markup(tmp_path):
    run = RunFolder.create(tmp_path / "run", {"name": EVIL, "seed": 0})
    passage = Document(id=EVIL, text=EVIL)
    moves = [
        Move(thought=EVIL, reading=EVIL, query=EVIL, documents=(passage,)),
        Move(thought=EVIL, answer=EVIL),
    ]
    group, words = scored(moves=moves, outcome="wrong")
    run.add_evaluation("after", 0, [group], decode=words.decode)
    for step in (0, 1):
        run.add_metrics(step, {f"parts/{EVIL}/mean": 0.5, "reward": 1})
    page, text = read(run)
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert EVIL in text


def test_run_without_evaluation_shows_its_curves(tmp_path):
    run = made_up_run(tmp_path / "run", steps=5, questions=6, finished=False)
    page, text = read(run)
    assert "No evaluation is stored yet" in text
    assert page.tags.count("svg") == 8
    assert page.tags.count("article") == 6, "the evaluation before training is read instead"


def test_empty_run_says_what_is_not_there(tmp_path):
    page, text = read(RunFolder.create(tmp_path / "run", {"name": "fresh", "seed": 1}))
    assert "0 steps" in text
    assert text.count("Not recorded in this run.") == 8
    assert "nothing to read yet" in text
    assert page.tags.count("article") == 0


def test_missing_stories_are_named(tmp_path):
    run = RunFolder.create(tmp_path / "run", {"name": "small"})
    direct = [Move(thought="x : y", answer="y")]
    group, words = scored(moves=direct, solvable="solvable")
    run.add_evaluation("after", 0, [group], decode=words.decode)
    _, text = read(run)
    assert text.count("Missing: ") == 5
    assert "no failed call was followed by a right answer" in text
    assert "no known fact" not in text


def test_a_conflict_is_no_story_of_two_hops():
    """It takes two searches, too, but the second is not about what the first found."""
    twice = [Move(thought="x", query="Lima"), Move(thought="x", query="Lima latest")]
    moves = [*twice, Move(thought="x", answer="10")]

    def two_hops(kind):
        group, _ = scored(moves=moves, kind=kind, hops=2)
        return next(story for story in stories([group]) if story.title == "Two hops")

    assert two_hops("two_unknown_unknown").found
    assert not two_hops("conflict").found
    assert not two_hops("disputed").found


def test_token_texts_may_come_from_a_tokenizer_or_not_at_all(tmp_path):
    run = RunFolder.create(tmp_path / "run", {"name": "small"})
    group, words = scored(moves=[Move(thought="x : y", answer="y")], solvable="solvable")
    length = len(group.group.trajectories[0].ledgers[0])
    credit = TrajectoryCredit(advantages=(np.full(length, -0.5, np.float32),))
    run.add_evaluation("after", 0, [group], credits=[[credit]])
    page, text = read(run)
    assert "<think>x : y</think>" in text
    assert not any("advantage" in value for name, value in page.attributes if name == "data-t")
    page, text = read(run, decode=words.decode)
    assert "<think>x : y</think>" in text
    assert any("advantage −0.5" in value for name, value in page.attributes if name == "data-t")
