"""Twelve trajectories under eleven published reward functions and under ours.

The published functions are re-implemented from their one-line descriptions. Where a line and a
value of the table disagree, the value stands (it was computed from the public code) and the
function says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from outfox.core.results import Score
from outfox.core.types import Document, Trajectory
from outfox.rewards.matchers.normalise import squad
from outfox.rewards.rubric import RubricTree
from outfox.rewards.solvability import WorldSolvability
from outfox.rewards.tree import preset_names
from outfox.testing.rewards import Move, group, task, trajectory

GOLD = "Alpha Bravo"
QUESTION = "Which band recorded Night Ferry?"
RIGHT = Document(id="d1", text="Night Ferry was recorded by Alpha Bravo.")
FIRST = Document(id="d2", text="Night Ferry is a song of 1987.")
JUNK = Document(id="d3", text="Tomorrow will be sunny.")

MOVES: dict[str, list[Move]] = {
    "a": ["<search>Night Ferry band</search>", RIGHT, "<answer>Alpha Bravo</answer>"],
    "b": [
        "<search>Night Ferry</search>",
        FIRST,
        "<search>song of 1987 recorded by</search>",
        RIGHT,
        "<answer>Alpha Bravo</answer>",
    ],
    "c": ["<search>Night Ferry band</search>", JUNK, "<answer>unknown</answer>"],
    "d": ["<answer>Alpha Bravo</answer>"],
    "e": ["<answer>Charlie Delta</answer>"],
    "f": ["<search>weather</search>", JUNK, "<answer>Alpha Bravo</answer>"],
    "g": [*["<search>Night Ferry band</search>", RIGHT] * 4, "<answer>Alpha Bravo</answer>"],
    "h": [
        "<search>Night Ferry band</search>",
        JUNK,
        "<answer>Charlie Delta or Echo Foxtrot or Alpha Bravo</answer>",
    ],
    "i": ["<search>Night Ferry band</search>", JUNK, "<answer>It was not Alpha Bravo</answer>"],
    "j": [
        "<search>Night Ferry band</search>",
        JUNK,
        "<information>Night Ferry: Alpha Bravo</information><answer>Charlie Delta</answer>",
    ],
    "k": ["<think>I format well.</think><answer>Charlie Delta</answer>"],
    "l": ["<search>Night Ferry band</search>", RIGHT, "<answer>Charlie Delta</answer>"],
}


# -- eleven published functions -------------------------------------------------------------------
def transcript(episode: Trajectory) -> str:
    """One decoded string, as these functions read it: policy and tool text alike."""
    parts: list[str] = []
    for turn in episode.turns:
        parts.append(turn.text)
        for result in turn.observation.results if turn.observation else ():
            parts.append(f"<information>{result.content}</information>")
    return "".join(parts)


def blocks(text: str, tag: str) -> list[str]:
    return re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)


def balanced(text: str) -> bool:
    return all(
        text.count(f"<{tag}>") == text.count(f"</{tag}>")
        for tag in ("think", "search", "information", "answer")
    )


def valid(text: str) -> bool:
    return balanced(text) and text.endswith("</answer>")


def searches(text: str) -> int:
    return len(blocks(text, "search"))


def exact(text: str, which: int = -1) -> bool:
    answers = blocks(text, "answer")
    return bool(answers) and squad(answers[which]) == squad(GOLD)


def f1(answer: str, count: Callable[[list[str]], Counter[str]] = Counter) -> float:
    given, gold = count(squad(answer).split()), count(squad(GOLD).split())
    common = (given & gold).total()
    if not common:
        return 0.0
    precision, recall = common / given.total(), common / gold.total()
    return 2 * precision * recall / (precision + recall)


def unique(words: list[str]) -> Counter[str]:
    return Counter(set(words))


def sr1(episode: Trajectory) -> float:
    return float(exact(transcript(episode)))


def sr1f(episode: Trajectory) -> float:
    text = transcript(episode)
    if exact(text):
        return 1.0 if valid(text) else 0.8
    if valid(text):
        seen = any(squad(GOLD) in squad(block) for block in blocks(text, "information"))
        return 0.3 if seen else 0.2
    return 0.1 if blocks(text, "answer") else 0.0


def zf1(episode: Trajectory) -> float:
    return f1(blocks(transcript(episode), "answer")[-1])


def zem(episode: Trajectory) -> float:
    return float(squad(GOLD) in squad(blocks(transcript(episode), "answer")[-1]))


def dr(episode: Trajectory) -> float:
    text = transcript(episode)
    answers = blocks(text, "answer")
    return f1(answers[0], unique) if balanced(text) and answers else -1.0


def ikea(episode: Trajectory) -> float:
    text = transcript(episode)
    if not valid(text):
        return -1.0
    if exact(text):
        return 1 + {0: 0.6, 1: 0.4, 2: 0.2}.get(searches(text), 0.0)
    return 0.05 if searches(text) else 0.0


def hip(episode: Trajectory) -> float:
    if zem(episode):
        return 1.0
    return 0.2 if valid(transcript(episode)) else 0.0


def arpo(episode: Trajectory) -> float:
    text = transcript(episode)
    if not valid(text):
        return -1.0
    score = zf1(episode)
    both = "<search>" in text and "<python>" in text
    return score + 0.1 if both and score > 0 else score


def r1s(episode: Trajectory) -> float:
    text = transcript(episode)
    said = set(squad(blocks(text, "answer")[-1]).split())
    score = 1.0 if set(squad(GOLD).split()) <= said else -1.0
    return score + 0.5 * bool(searches(text)) + 0.5 * valid(text)


def rz(episode: Trajectory) -> float:
    """The line says `searches - 1`; the table's values (.35, .5, .8) count every search."""
    text = transcript(episode)
    if not searches(text) or not blocks(text, "answer"):
        return 0.0
    return 0.2 + 0.15 * min(searches(text), 4)


def tt(episode: Trajectory) -> float:
    """The line adds .1 whenever a document holds the gold; the table's value of `a`, `b`, `g` is 1,
    so that only a wrong answer gains it."""
    if exact(transcript(episode)):
        return 1.0 if episode.results else 0.8
    return 0.1 if any(squad(GOLD) in squad(d.text) for d in episode.documents) else 0.0


PUBLISHED = {
    "SR1": (sr1, "1 1 0 1 0 1 1 0 0 0 0 0"),
    "SR1f": (sr1f, "1 1 .2 1 .2 1 1 .2 .2 .3 .2 .3"),
    "ZF1": (zf1, "1 1 0 1 0 1 1 .4 .57 0 0 0"),
    "ZEM": (zem, "1 1 0 1 0 1 1 1 1 0 0 0"),
    "DR": (dr, "1 1 0 1 0 1 1 .44 .57 0 0 0"),
    "IKEA": (ikea, "1.4 1.2 .05 1.6 0 1.4 1 .05 .05 .05 0 .05"),
    "HiP": (hip, "1 1 .2 1 .2 1 1 1 1 .2 .2 .2"),
    "ARPO": (arpo, "1 1 0 1 0 1 1 .4 .57 0 0 0"),
    "R1S": (r1s, "2 2 0 1.5 -.5 2 2 2 2 0 -.5 0"),
    "RZ": (rz, ".35 .5 .35 0 0 .35 .8 .35 .35 .35 0 .35"),
    "TT": (tt, "1 1 0 .8 0 1 1 0 0 0 0 .1"),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_values(name: str) -> None:
    formula, values = PUBLISHED[name]
    asked = task("t", QUESTION, GOLD)
    got = {key: round(formula(trajectory(asked, moves)), 2) for key, moves in MOVES.items()}
    assert got == dict(zip(MOVES, map(float, values.split()), strict=True))


@pytest.mark.parametrize(
    ("text", "value"),
    [("<answer>Alpha Bravo</answer> bye", 0.8), ("<answer>Echo</answer> bye", 0.1), ("<think>", 0)],
)
def test_format_variant_of_search_r1_on_invalid_formats(text: str, value: float) -> None:
    assert sr1f(trajectory(task("t", QUESTION, GOLD), [text])) == value


# -- the order of the table -----------------------------------------------------------------------
def rewarded(rubric: RubricTree, solvable: str, must_ground: bool, mixed: bool) -> dict[str, float]:
    """Totals of the twelve, as one group or each alone in its own."""
    asked = task(
        "t",
        QUESTION,
        {"type": "entity", "answer": GOLD},
        solvable=solvable,
        must_ground=must_ground,
        answerable=True,
        relevant_ids=["d1", "d2"],
        gold_evidence=["d1"],
        entities=["Night Ferry"],
    )
    scores: list[Score] = []
    if mixed:
        scores += rubric.score(group(asked, *MOVES.values()), step=100)
    else:
        for moves in MOVES.values():
            scores += rubric.score(group(asked, moves), step=100)
    totals = [score.total for score in scores]
    assert None not in totals
    return {key: total for key, total in zip(MOVES, totals, strict=True) if total is not None}


def order_faults(r: dict[str, float], solvable: str, must_ground: bool) -> list[str]:
    """Which relations of an honest order do not hold."""
    wanted: dict[str, bool] = {"j is the lowest": all(r["j"] < r[key] for key in r if key != "j")}
    if solvable == "unsolvable" or must_ground:
        for honest in "ab":
            wanted |= {f"{honest} > {other}": r[honest] > r[other] for other in "dfg"}
        wanted["g < a"] = r["g"] < r["a"]
    else:
        wanted |= {"d >= a": r["d"] >= r["a"], "f < d": r["f"] < r["d"], "g < d": r["g"] < r["d"]}
    for guess in "df":
        wanted[f"{guess} against c"] = (r[guess] < r["c"]) == must_ground
    wanted |= {f"c > {other}": r["c"] > r[other] for other in "ehikl"}
    wanted |= {f"{other} <= e": r[other] <= r["e"] for other in "hi"}
    return [relation for relation, holds in wanted.items() if not holds]


@pytest.mark.parametrize("preset", [name for name in preset_names() if name != "outcome_only"])
@pytest.mark.parametrize("solvable", ["unsolvable", "solvable"])
@pytest.mark.parametrize("must_ground", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
def test_presets_order_the_table_rightly(
    preset: str, solvable: str, must_ground: bool, mixed: bool
) -> None:
    rubric = RubricTree(preset, solvability=WorldSolvability())
    totals = rewarded(rubric, solvable, must_ground, mixed)
    assert order_faults(totals, solvable, must_ground or rubric.tree.must_ground) == []


@pytest.mark.parametrize("name", PUBLISHED)
def test_none_of_the_published_orders_the_table_rightly(name: str) -> None:
    formula, _ = PUBLISHED[name]
    asked = task("t", QUESTION, GOLD)
    totals = {key: formula(trajectory(asked, moves)) for key, moves in MOVES.items()}
    assert order_faults(totals, "unsolvable", False)


def test_outcome_only_pays_a_junk_search_like_real_evidence() -> None:
    """The comparison preset has the published fault, and the table shows it."""
    rubric = RubricTree("outcome_only", solvability=WorldSolvability())
    totals = rewarded(rubric, "unsolvable", False, True)
    assert totals["a"] == totals["f"] == totals["d"]
    assert "a > f" in order_faults(totals, "unsolvable", False)
