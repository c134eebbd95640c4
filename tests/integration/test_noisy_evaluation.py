"""Scripted policies in a noisy evaluation world: the metrics tell the careful from the careless."""

from pathlib import Path

import pytest

from outfox.build import assemble
from outfox.core.config import load_recipe
from outfox.evaluation.evaluate import evaluate
from outfox.evaluation.summary import block
from outfox.policies.scripted import ScriptedPolicy

RECIPE = Path(__file__).parent / "recipes" / "small.yaml"
FAILED = "The search failed ."


@pytest.fixture(scope="module")
def system():
    overrides = [
        "world.entities={countries: 40, cities: 200}",
        "world.disputed=true",
        "eval.world.noise={error: 0.25, stale: 0.15, poisoned: 0.2}",
        "solvability.source=world",
        "readings={}",
    ]
    return assemble(load_recipe(RECIPE, overrides))


def searches(messages) -> list[str]:
    written = [m.content for m in messages if m.role == "assistant" and "<search>" in m.content]
    return [text.split("<search>")[1].split("</search>")[0] for text in written]


def value_in(content: str, topic: str) -> str | None:
    """What the first passage that has the topic says, with two words as all quantities here."""
    for passage in content.split("\n"):
        if topic in passage:
            return " ".join(passage.split(topic)[1].split()[:2])
    return None


def careless(task, messages) -> str:
    """Searches once, and believes whatever comes."""
    topic = f"population of {task.metadata['entities'][0]}"
    if messages[-1].role == "user":
        return f"<think>x</think><search>{topic}</search>"
    return f"<think>x</think><answer>{value_in(messages[-1].content, topic) or 'unknown'}</answer>"


def stubborn(task, messages) -> str:
    """Searches in the same words until something comes."""
    if messages[-1].role == "tool" and messages[-1].content == FAILED:
        return f"<think>x</think><search>{searches(messages)[0]}</search>"
    return careless(task, messages)


def thorough(task, messages) -> str:
    """Goes from source to source of a dispute, until one names no other."""
    entity = task.metadata["entities"][0]
    if messages[-1].role == "user":
        return careless(task, messages)
    content, asked = messages[-1].content, searches(messages)
    if content == FAILED:
        return f"<think>x</think><search>{entity if asked[-1] != entity else asked[0]}</search>"
    here = next((p for p in content.split("\n") if asked[-1] in p), content)
    words = here.replace(" .", "").split()
    for before, place in (("says", -1), ("ask", -1), ("disagrees", -2), ("decides", -2)):
        if before in words[-2:] and "yearbook" not in words:
            return f"<think>x</think><search>{words[place]} of {entity}</search>"
    return f"<think>x</think><answer>{value_in(content, asked[-1]) or 'unknown'}</answer>"


async def measured(system, fn, *, noisy: bool, kind: str = "unknown"):
    tasks = [
        task
        for task in system.world.held_out
        if task.metadata["kind"] == kind and "population" in task.metadata["question"]
    ]
    made = await evaluate(
        tasks[:60],
        policy=ScriptedPolicy(fn),
        environment=(system.evaluated if noisy else system.world).environment,
        rubric=system.rubric,
        limits=system.limits,
        samples=2,
    )
    return made.measures


async def test_without_noise_nothing_of_it_is_measured(system):
    measures = await measured(system, careless, noisy=False)
    assert measures.accuracy.value > 0.95
    assert (measures.recovery.value, measures.followed_poison.value) == (None, None)
    assert block(measures)["changed_queries"] is None


async def test_noise_costs_and_asking_again_helps(system):
    once, again = [await measured(system, fn, noisy=True) for fn in (careless, stubborn)]
    assert once.accuracy.value < 0.75
    assert once.recovery.value == 0
    assert once.changed_queries.value is None
    assert once.followed_poison.value > 0.9
    assert again.recovery.value > 0.3
    assert again.changed_queries.value == 0
    assert again.accuracy.value > once.accuracy.value
    assert again.recovery.low < again.recovery.value < again.recovery.high


async def test_a_dispute_is_verified_by_who_goes_on(system):
    once = await measured(system, careless, noisy=False, kind="disputed")
    whole = await measured(system, thorough, noisy=False, kind="disputed")
    assert once.verified_conflict.value == 0
    assert 0.2 < once.accuracy.value < 0.8
    assert (whole.verified_conflict.value, whole.accuracy.value) == (1, 1)
    assert whole.calls.value == 3
    noisy = await measured(system, thorough, noisy=True, kind="disputed")
    assert 0.2 < noisy.verified_conflict.value < 1
    assert noisy.changed_queries.value == 1
