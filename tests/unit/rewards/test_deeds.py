"""Siblings that did the same are scored once, and no score shows it."""

from dataclasses import replace

from outfox.core.results import Value
from outfox.core.types import Document, Group
from outfox.rewards.deeds import deeds
from outfox.rewards.lift import signal
from outfox.rewards.rubric import RubricTree
from outfox.rewards.solvability import WorldSolvability
from outfox.testing.rewards import group, task, trajectory

PAGE = Document(id="d1", text="The currency of Chad is the franc.")
ASK = "<search>Chad currency</search>"
CHAD = task(
    "t",
    "Chad?",
    {"type": "entity", "answer": "franc"},
    relevant_ids=["d1"],
    entities=["Chad"],
    solvable="unsolvable",
)
SIBLINGS = group(
    CHAD,
    ["<think>well</think>" + ASK, PAGE, "<answer>franc</answer>"],
    ["<think>who knows</think>" + ASK, PAGE, "<answer>franc</answer>"],
    [ASK, PAGE, "<think>hm</think>" + ASK, PAGE, "<answer>franc</answer>"],
    [ASK, PAGE, "<answer>franc [d1]</answer>"],
    ["nothing"],
    ["[sure] nothing"],
    ["<answer>euro</answer>"],
    ["<think>" + "long " * 600 + "</think><answer>euro</answer>"],
)


def test_words_are_no_deeds_but_all_else_is():
    first, same, *others = (deeds(each) for each in SIBLINGS.trajectories)
    assert first == same
    assert first not in others
    *_, short, long = others
    assert short == long
    assert len({first, *others}) == 6


def test_what_came_back_is_a_deed_but_not_how_it_was_listed_or_how_long_it_took():
    def asked(*documents: Document):
        return trajectory(CHAD, [ASK, documents, "<answer>franc</answer>"])

    def changed(**fields: object):
        one = asked(PAGE)
        observation = one.turns[0].observation
        assert observation is not None
        result = replace(observation.results[0], **fields)
        turn = replace(one.turns[0], observation=replace(observation, results=(result,)))
        return replace(one, turns=(turn, *one.turns[1:]))

    assert deeds(asked(PAGE)) != deeds(asked(replace(PAGE, text="other")))
    assert deeds(asked(PAGE)) == deeds(changed(seconds=3.0)) == deeds(changed(documents=[PAGE]))


def test_scores_are_those_of_siblings_scored_apart():
    tree = {"extends": "default", "if_right": {"deduct": {"unsupported": 0.2}}}
    rubric = RubricTree(tree, solvability=WorldSolvability())

    def apart(place: int):
        """No sibling before it did the same: it stands first."""
        own = SIBLINGS.trajectories[place]
        others = [each for each in SIBLINGS.trajectories if each is not own]
        return rubric.score(Group(group_id="g", trajectories=(own, *others)), step=20)[0]

    together = rubric.score(SIBLINGS, step=20)
    assert list(together) == [apart(place) for place in range(len(together))]
    lengths = [score.results["excess_length"] for score in together]
    assert lengths[-1] != lengths[-2], "what an episode cost is measured of each"


def test_a_signal_of_the_users_own_sees_every_sibling():
    seen: list[str] = []

    @signal(range=(0, 1), family="outcome")
    def wordy(trajectory):
        seen.append(trajectory.policy_text)
        return Value(value=float("well" in trajectory.policy_text))

    tree = {"extends": "default", "if_right": {"deduct": {"wordy": 0.1}}}
    rubric = RubricTree(tree, solvability=WorldSolvability(), signals={"wordy": wordy})
    first, second, *_ = rubric.score(SIBLINGS, step=0)
    assert len(seen) == len(SIBLINGS.trajectories)
    assert first.results["wordy"] == Value(value=1.0)
    assert second.results["wordy"] == Value(value=0.0)
