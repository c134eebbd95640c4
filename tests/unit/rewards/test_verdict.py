from __future__ import annotations

import pytest

from outfox.core.results import SignalError, Value
from outfox.core.types import JSON, Document, Task
from outfox.rewards.signals import find_signal
from outfox.rewards.tree import OutcomeNode
from outfox.rewards.verdict import CASES, OUTCOMES, case_value, judge
from outfox.testing.rewards import Move, context, group, task, trajectory

PAGE = Document(id="d1", text="The currency of Chad is the franc.")
LOOK: list[Move] = ["<search>Chad currency</search>", PAGE]
JUNK: list[Move] = ["<search>weather</search>", Document(id="d9", text="sun")]
NODE = OutcomeNode()


def chad(answer: str | None) -> Task:
    gold: JSON = {"type": "entity", "answer": answer}
    return task("t", "currency of Chad?", gold, relevant_ids=["d1"], entities=["Chad"])


@pytest.mark.parametrize(
    ("gold", "moves", "must_ground", "case", "worth"),
    [
        ("franc", ["<answer>franc</answer>"], False, "right", 1.0),
        ("franc", ["<answer>franc</answer>"], True, "unsupported", -0.5),
        ("franc", [*LOOK, "<answer>franc</answer>"], True, "right", 1.0),
        ("franc", [*LOOK, "<answer>unknown</answer>"], False, "abstained_after_call", 0.0),
        ("franc", [*JUNK, "<answer>unknown</answer>"], False, "abstained_without_call", -0.25),
        ("franc", ["<answer>unknown</answer>"], False, "abstained_without_call", -0.25),
        ("franc", ["<answer>euro</answer>"], False, "wrong", -0.5),
        ("franc", LOOK, False, "unanswered", -0.5),
        ("franc", [], False, "unanswered", -0.5),
        ("franc", ["no tag"], False, "unanswered", -0.5),
        (None, [*LOOK, "<answer>unknown</answer>"], False, "rightly_abstained", 1.0),
        (
            None,
            ["<answer>unknown</answer>"],
            False,
            "unanswerable_abstained_without_call",
            -0.25,
        ),
        (None, ["<answer>franc</answer>"], False, "unanswerable_asserted", -0.5),
        (None, LOOK, False, "unanswered", -0.5),
    ],
)
def test_every_row_of_the_outcome_table(
    gold: str | None, moves: list[Move], must_ground: bool, case: str, worth: float
) -> None:
    episode = trajectory(chad(gold), moves)
    told = context(group(chad(gold), moves))
    result = find_signal("typed_match")(episode, told)
    found, _ = judge(episode, result, node=NODE, must_ground=must_ground)
    assert found == case
    assert case_value(found, NODE) == worth


def test_every_case_has_an_outcome_and_a_value() -> None:
    assert set(OUTCOMES) == set(CASES)
    assert all(isinstance(case_value(case, NODE), float) for case in CASES)


def test_unsupported_may_have_a_value_of_its_own() -> None:
    assert case_value("unsupported", OutcomeNode(unsupported=0.1)) == 0.1


def test_an_environment_that_ended_the_episode_needs_no_answer() -> None:
    episode = trajectory(chad("franc"), LOOK, stop_reason="done", final_state={"won": True})
    assert judge(episode, Value(value=1.0), node=NODE, must_ground=False)[0] == "right"


def test_a_failed_outcome_signal_cannot_be_judged() -> None:
    episode = trajectory(chad("franc"), ["<answer>franc</answer>"])
    assert judge(episode, SignalError(why="x"), node=NODE, must_ground=False)[0] is None


def test_right_from() -> None:
    episode = trajectory(chad("franc"), ["<answer>the franc</answer>"])
    graded = OutcomeNode(right_from=0.8)
    assert judge(episode, Value(value=0.8), node=graded, must_ground=False)[0] == "right"
    assert judge(episode, Value(value=0.79), node=graded, must_ground=False)[0] == "wrong"
