"""Gates: what a drill produces, what passes, and the AUROC of the first decision."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfox.core.ledger import Completion, Span
from outfox.core.protocols import Rendered
from outfox.core.results import Event, Score, ScoredGroup
from outfox.core.types import Document, Group, Message, Opening, Task
from outfox.evaluation.gates import auroc, decision_gate, drill_gate, recall, run_gates
from outfox.testing.store import Move, Words, made_up
from outfox.worlds.world import Drill

WORDS = Words()


class FakeCodec:
    stop = ("</think>",)

    def render(self, messages, tools=()):
        return Rendered(token_ids=WORDS.encode("".join(m.content for m in messages)))

    def extend(self, messages, limit=None):
        return self.render([Message(role="tool", content=f"<information>{messages[0].content}")])

    encode = staticmethod(WORDS.encode)
    decode = staticmethod(WORDS.decode)

    def spans(self, token_ids, *, after_observation, continued=False):
        found = re.search(r"<think>(.*)</think>", WORDS.decode(token_ids))
        if not found:
            return ()
        start = len(WORDS.encode(WORDS.decode(token_ids)[: found.start(1)]))
        end = start + len(WORDS.encode(found[1]))
        value = Span(name="note" if after_observation else "draft", start=end - 1, end=end)
        return (value, Span(name="thought", start=start, end=end))


class FakeEngine:
    """Writes what `replies` says for a context, and notes what it was asked."""

    def __init__(self, replies):
        self.replies, self.asked, self.open_sessions = replies, [], set()

    def open(self, session, *, noise_key, parent=None):
        assert session not in self.open_sessions
        self.open_sessions.add(session)

    def end(self, session):
        self.open_sessions.remove(session)

    async def generate(self, session, token_ids, *, sampling, stop=()):
        context = WORDS.decode(token_ids)
        self.asked.append((context, sampling.temperature, stop))
        ids = WORDS.encode(self.replies[context])
        return Completion(
            token_ids=ids, logprobs=np.zeros(len(ids)), policy_version=0, finish_reason="stop"
        )


def drill(name, question, expected, events=()):
    opening = Opening(messages=(Message(role="user", content=question),))
    return Drill(name=name, opening=opening, events=events, expected=expected)


class Source:
    def take(self, step, count):
        return ()

    def drills(self, name, count, seed):
        found = {
            "recall": [
                drill("recall", "Peru?", "Peru currency ? Sol"),
                drill("recall", "Mali?", "Mali currency ? Franc"),
                drill("recall", "Togo?", "Togo currency ? Franc"),
                drill("recall", "Iran?", "Iran currency ? Rial"),
            ],
            "found": [
                drill(
                    "found",
                    "Oz?",
                    "Oz currency Zed Coin",
                    (
                        Event(text="<search>Oz</search>"),
                        Event(messages=(Message(role="tool", content="Oz Zed Coin"),)),
                    ),
                )
            ],
        }
        return found.get(name, [])[:count]


REPLIES = {
    "Peru?": "<think>Peru currency ? Sol</think>",
    "Mali?": "<think>Mali currency ? Franc",
    "Togo?": "<think>Mali currency ? Franc</think>",
    "Iran?": "<think>Iran currency Rial</think>",
    "Oz?<search>Oz</search><information>Oz Zed Coin": "<think>Oz currency Zed Coin</think>",
}


async def test_drills_are_rendered_generated_greedily_and_their_whole_thought_compared():
    engine = FakeEngine(REPLIES)
    gates = {gate.name: gate for gate in await run_gates(engine, FakeCodec(), Source())}
    assert gates["recall"].estimate.value == 0.25
    assert not gates["recall"].passed
    assert gates["found"].passed
    assert gates["found"].estimate.n == 1
    assert gates["copy"].estimate.value is None
    assert not gates["copy"].passed
    assert {(temperature, stop) for _, temperature, stop in engine.asked} == {(0.0, ("</think>",))}
    assert not engine.open_sessions


async def test_recall_is_the_estimate_of_its_gate():
    found = await recall(FakeEngine(REPLIES), FakeCodec(), Source(), count=1)
    assert (found.value, found.n) == (1.0, 1)
    assert found.low == pytest.approx(0.2065, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "right", "passed"),
    [("recall", 97, True), ("recall", 96, False), ("missing", 90, True), ("copy", 94, False)],
)
def test_limits_are_inclusive(name, right, passed):
    gate = drill_gate(name, ["a"] * 100, ["a"] * right + [None] * (100 - right))
    assert gate.passed is passed
    assert ("passed" in str(gate)) is passed


def test_auroc_by_hand():
    # pairs: (.9,.1) win, (.9,.5) win, (.5,.1) win, (.5,.5) tie -> 3.5 / 4
    assert auroc([0.9, 0.5, 0.1, 0.5], [True, True, False, False]) == pytest.approx(0.875)
    assert auroc([1, 1], [True, True]) is None


@given(st.lists(st.tuples(st.sampled_from([0, 0.25, 0.5, 1]), st.booleans()), max_size=20))
def test_auroc_is_the_share_of_won_pairs(rows):
    wins = [(p > q) + (p == q) / 2 for p, one in rows if one for q, other in rows if not other]
    found = auroc([score for score, _ in rows], [label for _, label in rows])
    assert found == (pytest.approx(np.mean(wins)) if wins else None)


def group(task_id, solvable, *searches):
    prompt = (Message(role="user", content="?"),)
    task = Task(task_id=task_id, prompt=prompt, reference="x", metadata={"solvable": solvable})
    ask = Move(thought="x : y", query="x", documents=(Document(id="d", text="t"),))
    say = Move(thought="x : y", answer="x")
    members = tuple(
        made_up(task, [ask, say] if search else [say, ask], words=WORDS, sibling=i)
        for i, search in enumerate(searches)
    )
    score = Score(total=0.0, outcome="wrong", results={}, parts={})
    return ScoredGroup(
        group=Group(group_id=f"0/{task_id}", trajectories=members), scores=(score,) * len(members)
    )


def test_decision_gate_reads_the_first_turn_only():
    coin = [group(f"{label}{i}", label, True, False) for i in (1, 2) for label in
            ("solvable", "unsolvable", "undetermined")]  # fmt: skip
    gate = decision_gate(coin)
    assert (gate.estimate.value, gate.estimate.n, gate.passed) == (0.5, 4, True)
    knows = decision_gate(
        [group("a", "solvable", False, False), group("b", "unsolvable", True, True)]
    )
    assert (knows.estimate.value, knows.passed) == (1.0, False)


def test_decision_gate_without_both_labels_is_not_measured():
    assert decision_gate([group("a", "solvable", True)]).estimate.value is None
