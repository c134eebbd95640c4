"""Every metric on a set of episodes small enough to count by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from outfox.core.results import Score, ScoredGroup
from outfox.core.types import Action, Document, Group, Message, Task
from outfox.evaluation.episodes import names_conflict
from outfox.evaluation.intervals import wilson
from outfox.evaluation.metrics import measure
from outfox.evaluation.summary import NOT_YET, block, line, short, summary
from outfox.testing.store import Move, Words, made_up

WORDS = Words()
GOLD, NOISE = Document(id="gold", text="Peru uses the Sol"), Document(id="noise", text="Peru")


def question(task_id, kind="known", solvable="solvable", **metadata):
    labels = {"kind": kind, "solvable": solvable, "relevant_ids": ["gold"], **metadata}
    prompt = (Message(role="user", content="?"),)
    return Task(task_id=task_id, prompt=prompt, reference={"answer": "Sol"}, metadata=labels)


def direct(answer="Sol", text="x : y"):
    return [Move(thought=text, answer=answer)]


def searched(answer="Sol", document=GOLD, times=1):
    calls = [Move(thought="x : y", query="Peru", documents=(document,)) for _ in range(times)]
    return [*calls, Move(thought="Peru : Sol", answer=answer)]


def group(task, *played, total=1.0):
    """`played`: (moves, outcome) of each sibling."""
    members = tuple(
        made_up(task, moves, words=WORDS, sibling=i, stop_reason="answer")
        for i, (moves, _) in enumerate(played)
    )
    scores = tuple(
        Score(total=None if outcome == "failed" else total, outcome=outcome, results={}, parts={})
        for _, outcome in played
    )
    return ScoredGroup(
        group=Group(group_id=f"0/{task.task_id}", trajectories=members), scores=scores
    )


@pytest.fixture
def groups():
    known = question("k1"), question("k2")
    unknown = [question(f"u{i}", "unknown", "unsolvable") for i in range(3)]
    fresh = question("s1", "stale", "solvable", must_ground=True)
    missing = question("m1", "unanswerable", "unsolvable", answerable=False)
    return [
        group(known[0], (direct(), "right"), (searched(), "right")),
        group(known[1], (direct("Inti"), "wrong"), (direct("unknown"), "abstained")),
        group(unknown[0], (searched(), "right"), (searched(times=3), "right")),
        group(unknown[1], (searched("Inti", NOISE), "wrong"), (direct(), "right")),
        group(unknown[2], (searched(), "failed"), (searched("unknown"), "abstained")),
        group(fresh, (direct(), "unsupported"), (searched(), "right")),
        group(missing, (searched("unknown"), "right"), (direct("unknown"), "abstained")),
    ]


def test_counts_leave_out_what_failed_outside_the_policy(groups):
    found = measure(groups)
    assert (found.questions, found.episodes, found.failed) == (7, 14, 1)


def test_accuracy_counts_right_abstentions_and_right_without_evidence(groups):
    # right: k1 2, u0 2, u1 1, s1 2, m1 2 of 13
    assert measure(groups).accuracy.value == pytest.approx(9 / 13)


def test_necessity_and_j(groups):
    found = measure(groups)
    # with a call: k1 1; u0 2, u1 1, u2 1; s1 1; m1 1 = 7, of which needed 6
    assert found.necessity_precision.value == pytest.approx(6 / 7)
    # needed: u0 2, u1 2, u2 1, s1 2, m1 2 = 9; relevant: u0 2, u2 1, s1 1, m1 1 = 5
    assert found.necessity_recall.value == pytest.approx(5 / 9)
    assert found.under_search.value == pytest.approx(4 / 9)
    # known and not must-ground: k1 2, k2 2; one searched
    assert found.over_search.value == pytest.approx(1 / 4)
    assert found.j.value == pytest.approx(1 - 1 / 4 - 4 / 9)
    assert found.calls_known.value == pytest.approx(1 / 4)
    assert found.calls_needed.value == pytest.approx((1 + 3 + 1 + 0 + 1 + 0 + 1 + 1 + 0) / 9)


def test_abstention_and_wrong(groups):
    found = measure(groups)
    assert found.abstain_right.value == 1.0
    # answerable 11: k2 one, u2 one
    assert found.abstain_false.value == pytest.approx(2 / 11)
    assert found.wrong.value == pytest.approx(2 / 13)


def test_tokens_per_correct_counts_the_tokens_of_wrong_episodes_too(groups):
    tokens = sum(
        t.policy_tokens
        for g in groups
        for t, s in zip(g.group.trajectories, g.scores, strict=True)
        if s.outcome != "failed"
    )
    assert measure(groups).tokens_per_correct.value == pytest.approx(tokens / 9)


def test_by_kind(groups):
    kinds = measure(groups).by_kind
    assert list(kinds) == ["known", "stale", "unanswerable", "unknown"]
    assert kinds["known"].accuracy.value == 0.5
    assert kinds["known"].n == 2
    assert kinds["unknown"].calls.value == pytest.approx(6 / 5)
    assert kinds["unanswerable"].abstained.value == 1.0


def test_undetermined_questions_enter_accuracy_only():
    found = measure([group(question("x", solvable="undetermined"), (searched(), "right"))])
    assert found.accuracy.value == 1
    assert found.necessity_precision.value == 0
    assert found.over_search.value is None
    assert found.j.value is None


def test_gated_answer_is_not_right():
    found = measure([group(question("x"), (direct(), "gated"))])
    assert found.accuracy.value == 0
    assert found.wrong.value == 1


def test_conflict_pays_saying_so():
    task = question("c1", "conflict", "unsolvable", gold_evidence=["gold", "noise"])
    silent, said = (
        searched(),
        [*searched()[:-1], Move(thought="sources differ : Sol", answer="Sol")],
    )
    found = measure([group(task, (silent, "right"), (said, "right"), (said, "wrong"))])
    assert found.conflict.value == pytest.approx((0.6 + 1 + 0) / 3)


def test_what_names_a_conflict():
    task = question("c1", "conflict", "unsolvable", gold_evidence=["gold", "noise"])
    look = Move(thought="x : y", query="Peru", documents=(GOLD, NOISE))
    silent = made_up(task, [look, Move(thought="Peru : Sol", answer="Sol")], words=WORDS)
    assert not names_conflict(silent)
    said = made_up(task, [look, Move(thought="矛盾 : Sol", answer="Sol")], words=WORDS)
    assert names_conflict(said)
    for ids, named in (("gold", "noise"), True), (("gold", "forged"), False):
        last = replace(silent.turns[-1], action=Action(answer="Sol", citations=ids))
        cited = replace(silent, turns=(*silent.turns[:-1], last))
        assert names_conflict(cited) is named


def test_nothing_measured_is_none_not_zero():
    found = measure([])
    assert found.accuracy.value is None
    assert found.j.value is None
    assert found.by_kind == {}
    assert block(found)["accuracy"] is None


def test_same_seed_same_intervals(groups):
    assert measure(groups, seed=3) == measure(groups, seed=3)
    assert measure(groups, seed=3).j.low != measure(groups, seed=4).j.low


def test_wilson_against_published_values():
    # Newcombe 1998, table I: 81 of 263, and 0 of 20
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0, 0.1611), abs=5e-5)


def test_bootstrap_covers_the_truth_and_counts_questions_not_samples():
    draws = np.random.default_rng(0).random(150)
    doubled = [
        group(question(f"q{i}"), *[(direct(), "right" if x < 0.7 else "wrong")] * 2)
        for i, x in enumerate(draws)
    ]
    accuracy = measure(doubled).accuracy
    assert accuracy.low < 0.7 < accuracy.high
    # two equal samples carry no more than one: the width is that of 150 questions
    width = 2 * 1.96 * np.sqrt(accuracy.value * (1 - accuracy.value) / 150)
    assert accuracy.high - accuracy.low == pytest.approx(width, rel=0.15)
    assert accuracy.n == 150


def test_all_wrong_is_not_certain():
    accuracy = measure([group(question(f"q{i}"), (direct(), "wrong")) for i in range(20)]).accuracy
    assert accuracy.value == 0
    assert (accuracy.low, accuracy.high) == pytest.approx((0, 0.1611), abs=5e-5)


def test_summary_has_the_documented_keys_and_is_json(groups):
    found = summary(before=measure(groups), recipe="when-to-search")
    assert json.loads(json.dumps(found)) == found
    assert found["after"] is None
    before = found["before"]
    assert all(before[key] is None for key in NOT_YET)
    assert before["intervals"]["j"]["n"] == 7
    assert before["n"] == {"questions": 7, "episodes": 14, "failed": 1}
    assert before["by_kind"]["known"]["n"] == 2
    assert before["stops"] == {"answer": 1.0}
    assert {"accuracy", "necessity_precision", "abstain_false", "closed_book_recall"} <= set(before)


def test_line(groups):
    assert line(measure(groups)) == "acc .69 · searches known .25 unknown .89 · J .31 · reward 1.00"


@pytest.mark.parametrize(
    ("value", "shown"), [(0.5, ".50"), (-0.25, "-.25"), (1.4, "1.40"), (None, "–"), (10.2, "10.20")]
)
def test_short(value, shown):
    assert short(value) == shown
