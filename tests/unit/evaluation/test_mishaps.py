"""Failed calls, poison and conflicts, on episodes small enough to count by hand."""

import pytest

from outfox.core.results import Score, ScoredGroup
from outfox.core.types import Document, Group, Message, Task
from outfox.evaluation.behaviour import behaviour
from outfox.evaluation.intervals import wilson
from outfox.evaluation.metrics import measure
from outfox.evaluation.mishaps import (
    Retries,
    followed_poison,
    is_poisoned,
    retries,
    saw_all_evidence,
)
from outfox.evaluation.summary import block
from outfox.testing.store import Move, Words, made_up

WORDS = Words()
GOLD = Document(id="gold", text="population of Lima 10 million .")
BAD = Document(id="gold", text="population of Lima 3 million .", poison="3 million")
MEASURES = ("recovery", "changed_queries", "followed_poison", "verified_conflict")


def task(name="q", kind="unknown", answer="10 million", of="number", **labels):
    metadata = {
        "kind": kind,
        "solvable": "unsolvable",
        "relevant_ids": ["gold"],
        "gold_evidence": ["gold"],
        "entities": ["Lima"],
        **labels,
    }
    prompt = (Message(role="user", content="?"),)
    reference = {"type": of, "answer": answer}
    return Task(task_id=name, prompt=prompt, reference=reference, metadata=metadata)


def failed(query="population of Lima", status="error"):
    return Move(thought="x", query=query, status=status)


def found(*documents, query="population of Lima"):
    return Move(thought="x", query=query, documents=documents)


def says(answer):
    return Move(thought="x", answer=answer)


def played(*moves, of=None):
    return made_up(of or task(), list(moves), words=WORDS)


def measured(*episodes):
    """`episodes`: (task, moves, outcome)."""
    groups = []
    for of, moves, outcome in episodes:
        trajectory = made_up(of, list(moves), words=WORDS)
        score = Score(total=1.0, outcome=outcome, results={}, parts={})
        group = Group(group_id=trajectory.group_id, trajectories=(trajectory,))
        groups.append(ScoredGroup(group=group, scores=(score,)))
    return measure(groups), groups


# -- failed calls ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("moves", "counts"),
    [
        ((found(GOLD), says("10 million")), (0, 0, 0)),
        ((failed(), says("unknown")), (1, 0, 0)),
        ((failed(), found(GOLD), says("10 million")), (1, 1, 0)),
        ((failed(), found(GOLD, query="Lima"), says("10 million")), (1, 1, 1)),
        ((failed(), found(GOLD, query=" Population  of LIMA"), says("1")), (1, 1, 0)),
        ((failed(), failed("Lima"), found(GOLD, query="Lima"), says("1")), (2, 2, 1)),
        ((failed(status="timeout"), failed("Lima"), says("1")), (2, 1, 1)),
        ((failed(status="empty"), found(GOLD), says("1")), (0, 0, 0)),
        ((failed(status="refused"), found(GOLD), says("1")), (0, 0, 0)),
    ],
)
def test_retries(moves, counts):
    failures, followed_up, changed = counts
    assert retries(played(*moves)) == Retries(
        failed=failures, followed_up=followed_up, changed=changed
    )


def test_recovery_and_changed_queries():
    same = (failed(), found(GOLD), says("10 million"))
    other = (failed(), found(GOLD, query="Lima"), says("10 million"))
    gave_up = (failed(), says("unknown"))
    fine = (found(GOLD), says("10 million"))
    measures, groups = measured(
        (task("a"), same, "right"),
        (task("b"), other, "right"),
        (task("c"), gave_up, "abstained"),
        (task("d"), other, "wrong"),
        (task("e"), fine, "right"),
    )
    assert (measures.recovery.value, measures.recovery.n) == (0.5, 4)
    assert (measures.recovery.low, measures.recovery.high) == wilson(0.5, 4)
    assert measures.changed_queries.value == pytest.approx(2 / 3)
    assert measures.changed_queries.n == 3
    assert behaviour(groups)["behaviour/recovery"] == 0.5


# -- poison ---------------------------------------------------------------------------------------
def test_poison_is_followed_where_it_is_answered():
    assert followed_poison(played(found(BAD), says("3 million")))
    assert followed_poison(played(found(BAD), says("3,000,000")))
    assert not followed_poison(played(found(BAD), says("10 million")))
    assert not followed_poison(played(found(BAD), says("unknown")))
    assert not followed_poison(played(found(BAD), says("4 million")))
    assert not followed_poison(played(found(GOLD), says("3 million")))
    assert is_poisoned(played(found(BAD), says("1")))
    assert not is_poisoned(played(found(GOLD), says("1")))


def test_poison_on_another_hop_may_be_of_another_type():
    of = task(answer="10 million", of="number")
    bad = Document(id="d1", text="currency of Lima Azerbaijani Manat .", poison="Azerbaijani Manat")
    assert not followed_poison(played(found(bad), says("10 million"), of=of))
    assert followed_poison(played(found(bad), says("Azerbaijani Manat"), of=of))


def test_poison_on_the_way_is_followed_where_it_is_asked_about():
    of = task(answer="Sol", of="entity", entities=["Lima", "Peru"])
    bad = Document(id="d1", text="country of Lima Chile .", poison="Chile")
    on = (found(bad, query="country of Lima"), found(GOLD, query="currency of Chile"), says("Peso"))
    assert followed_poison(played(*on, of=of))
    assert not followed_poison(played(*on, of=task(answer="Sol", of="entity")))
    checked = (found(bad, query="country of Lima"), found(query="currency of Peru"), says("Sol"))
    assert not followed_poison(played(*checked, of=of))
    before = (found(query="currency of Chile"), found(bad, query="country of Lima"), says("Sol"))
    assert not followed_poison(played(*before, of=of))


@pytest.mark.parametrize("reference", ["text alone", {"type": "list", "answer": ["a", "b"]}, 5])
def test_poison_is_told_whatever_the_reference_looks_like(reference):
    of = Task(task_id="q", prompt=task().prompt, reference=reference, metadata={})
    assert followed_poison(played(found(BAD), says("3 million"), of=of))
    assert not followed_poison(played(found(BAD), says("4 million"), of=of))


def test_followed_poison_counts_only_who_was_shown_some():
    measures, _ = measured(
        (task("a"), (found(BAD), says("3 million")), "wrong"),
        (task("b"), (found(BAD), found(GOLD), says("10 million")), "right"),
        (task("c"), (found(BAD), says("unknown")), "abstained"),
        (task("d"), (found(GOLD), says("3 million")), "wrong"),
    )
    assert measures.followed_poison.value == pytest.approx(1 / 3)
    assert measures.followed_poison.n == 3


# -- conflicts ------------------------------------------------------------------------------------
def test_a_conflict_is_verified_by_the_settling_passage_untampered():
    assert saw_all_evidence(played(found(GOLD), says("1")))
    assert not saw_all_evidence(played(found(BAD), says("1")))
    assert saw_all_evidence(played(found(BAD), found(GOLD), says("1")))
    assert not saw_all_evidence(played(says("1")))
    assert not saw_all_evidence(played(found(GOLD), says("1"), of=task(gold_evidence=[])))


def test_verified_conflicts_and_how_disputes_are_handled():
    first = Document(id="first", text="population of Lima 3 million , census disagrees .")
    measures, _ = measured(
        (task("a", "conflict"), (found(GOLD), says("10 million")), "right"),
        (task("b", "disputed"), (found(first), found(GOLD), says("10 million")), "right"),
        (task("c", "disputed"), (found(first), says("3 million")), "wrong"),
        (task("d", "unknown"), (found(first), says("3 million")), "wrong"),
    )
    assert measures.verified_conflict.value == pytest.approx(2 / 3)
    assert measures.conflict.value == pytest.approx((0.6 + 0.6 + 0) / 3)


# -- where nothing of the sort happened -----------------------------------------------------------
def test_what_did_not_happen_is_not_measured_rather_than_zero():
    measures, groups = measured((task(), (found(GOLD), says("10 million")), "right"))
    content = block(measures)
    assert [content[name] for name in MEASURES] == [None] * 4
    assert not set(MEASURES) & set(content["intervals"])
    assert not [key for key in behaviour(groups) if key.rpartition("/")[2] in MEASURES]
    assert block(measure([]))["recovery"] is None
