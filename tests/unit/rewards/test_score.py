from pathlib import Path

import pytest

import outfox
from outfox.core.errors import ConfigError
from outfox.core.results import Value
from outfox.core.types import Document
from outfox.rewards.score import score
from outfox.testing.rewards import Move, group, task, trajectory

PAGE = Document(id="d1", text="The currency of Chad is the franc.")
LOOK: list[Move] = ["<search>Chad currency</search>", PAGE]
SIGNAL = """
import outfox

@outfox.signal(range=(0, 1), family="cost")
def calls(trajectory, context):
    return min(1.0, sum(len(turn.action.calls) for turn in trajectory.turns) / 2)
"""


def chad(solvable: str = "unsolvable"):
    return task(
        "t",
        "Chad?",
        {"type": "entity", "answer": "franc"},
        relevant_ids=["d1"],
        entities=["Chad"],
        solvable=solvable,
    )


def test_it_is_public():
    assert outfox.score is score


def test_a_trajectory_is_scored_by_itself_by_the_default_rubric():
    (right,) = score(trajectory(chad(), [*LOOK, "<answer>franc</answer>"]))
    (wrong,) = score(trajectory(chad(), [*LOOK, "<answer>euro</answer>"]))
    assert (right.outcome, wrong.outcome) == ("right", "wrong")
    assert right.total is not None
    assert wrong.total is not None
    assert right.total > 0.9 > 0 > wrong.total


def test_siblings_are_scored_in_order():
    scores = score(group(chad(), ["<answer>euro</answer>"], [*LOOK, "<answer>franc</answer>"]))
    assert [each.outcome for each in scores] == ["wrong", "right"]


def test_the_tasks_own_label_says_whether_a_search_was_needed():
    moves = [*LOOK, "<answer>franc</answer>"]
    (needed,), (needless,) = (
        score(trajectory(chad(label), moves)) for label in ("unsolvable", "solvable")
    )
    assert needless.total is not None
    assert needed.total is not None
    assert needless.total < needed.total
    (early,) = score(trajectory(chad("solvable"), moves), step=0)
    assert early.total == needed.total  # the weight begins at 0


def test_a_rubric_of_ones_own_with_a_signal_of_ones_own(tmp_path: Path):
    (tmp_path / "mine.py").write_text(SIGNAL)
    name = f"{tmp_path}/mine.py:calls"
    tree = {"version": 1, "if_right": {"cap": 0.5, "deduct": {name: 0.5}}}
    (found,) = score(trajectory(chad(), [*LOOK, "<answer>franc</answer>"]), tree)
    assert found.results[name] == Value(value=0.5)
    assert found.total == pytest.approx(0.75)
    with pytest.raises(ConfigError, match="--no-user-code refuses"):
        score(trajectory(chad(), LOOK), tree, allow_user_code=False)


def test_a_plain_function_is_refused(tmp_path: Path):
    (tmp_path / "mine.py").write_text("def calls(trajectory):\n    return 0.0\n")
    tree = {"version": 1, "if_right": {"deduct": {f"{tmp_path}/mine.py:calls": 0.5}}}
    with pytest.raises(ConfigError, match="is a plain function: write @outfox"):
        score(trajectory(chad(), LOOK), tree)
