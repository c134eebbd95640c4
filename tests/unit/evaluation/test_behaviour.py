"""Step metrics: parts sum to the reward, shares of stop reasons to one."""

from __future__ import annotations

import pytest

from outfox.core.results import Score, ScoredGroup, Value
from outfox.core.types import Document, Group, Message, Task
from outfox.evaluation.behaviour import behaviour
from outfox.testing.store import Move, Words, made_up

WORDS = Words()


def test_parts_stops_and_tools():
    task = Task(
        task_id="a",
        prompt=(Message(role="user", content="?"),),
        reference="x",
        metadata={"solvable": "unsolvable", "relevant_ids": ["d"]},
    )
    ask = Move(thought="x : y", query="x", documents=(Document(id="d", text="t"),))
    failed = Move(thought="x : y", query="x", status="error")
    say = Move(thought="x : y", answer="x")
    members = (
        made_up(task, [ask, say], words=WORDS),
        made_up(task, [failed, ask, say], words=WORDS, sibling=1),
        made_up(task, [ask], words=WORDS, sibling=2, stop_reason="max_turns"),
    )
    scores = (
        Score(total=1.0, outcome="right", results={}, parts={"match": 1.0}),
        Score(total=0.9, outcome="right", results={}, parts={"match": 1.0, "failed": -0.1}),
        Score(total=None, outcome="failed", results={}, parts={}),
    )
    whole = Group(group_id="0/a", trajectories=members)
    found = behaviour([ScoredGroup(group=whole, scores=scores)])
    assert found["parts/outcome/mean"] == 1.0
    assert found["parts/failed/mean"] == pytest.approx(-0.05)
    assert found["stop/answer"] == pytest.approx(2 / 3)
    assert found["stop/max_turns"] == pytest.approx(1 / 3)
    assert found["behaviour/accuracy"] == 1.0
    assert found["tools/call_frequency"] == pytest.approx(4 / 3)
    assert found["tools/failure_frequency"] == pytest.approx(1 / 4)
    assert "behaviour/over_search" not in found
    assert "behaviour/j" not in found


def test_gate_is_no_outcome():
    prompt = (Message(role="user", content="?"),)
    task = Task(task_id="a", prompt=prompt, reference="x")
    group = Group(group_id="0/a", trajectories=(made_up(task, [], words=WORDS),))
    score = Score(total=-2.0, outcome="gated", results={}, parts={"leak": -2.0}, gate="leak")
    found = behaviour([ScoredGroup(group=group, scores=(score,))])
    assert found["parts/leak/mean"] == -2.0
    assert "parts/outcome/mean" not in found


def test_details_of_signals_are_averaged_over_what_has_them():
    prompt = (Message(role="user", content="?"),)
    task = Task(task_id="a", prompt=prompt, reference="x")
    members = tuple(made_up(task, [], words=WORDS, sibling=i) for i in range(3))
    values = (
        Value(value=1.0, details={"f1": 0.5}),
        Value(value=0.0, details={"f1": 0.0}),
        Value(value=1.0),
    )
    scores = tuple(
        Score(total=v.value, outcome="right", results={"mine.py:f": v}, parts={"f": v.value})
        for v in values
    )
    found = behaviour(
        [ScoredGroup(group=Group(group_id="0/a", trajectories=members), scores=scores)]
    )
    assert found["rewards/mine.py:f/f1/mean"] == 0.25


def test_nothing_played():
    assert behaviour([]) == {}
