"""Evaluation plays, scores and measures, and gives the same result twice."""

from __future__ import annotations

import numpy as np

from outfox.core.results import Score, TrajectoryCredit
from outfox.core.types import Document, Message, Observation, Opening, Task, ToolResult
from outfox.evaluation.evaluate import evaluate
from outfox.policies.scripted import ScriptedPolicy
from outfox.rewards.matchers import match
from outfox.rollout.limits import Limits


class Desk:
    """Answers every search with the one passage that it holds."""

    def __init__(self, task, seed):
        self._task = task

    async def reset(self):
        return Opening(messages=self._task.prompt)

    async def step(self, message):
        if not message.tool_calls:
            return Observation(done=True)
        passage = Document(id="gold", text=f"The answer is {self._task.reference}")
        call = message.tool_calls[0]
        result = ToolResult(
            tool_call_id=call.id, name=call.name, content=passage.text, documents=(passage,)
        )
        return Observation(
            messages=(Message(role="tool", content=passage.text),), results=(result,)
        )

    def final(self):
        return None

    async def close(self):
        pass


class RightOrWrong:
    bounds = (0.0, 1.0)

    def __init__(self):
        self.steps = set()

    def score(self, group, *, step):
        self.steps.add(step)
        right = [match(t.task.reference, t.answer).right for t in group.trajectories]
        return tuple(
            Score(total=float(r), outcome="right" if r else "wrong", results={}, parts={})
            for r in right
        )


def tasks(count):
    return [
        Task(
            task_id=f"t{i}",
            prompt=(Message(role="user", content="?"),),
            reference="Sol",
            metadata={
                "kind": "unknown" if i % 2 else "known",
                "solvable": "unsolvable" if i % 2 else "solvable",
                "relevant_ids": ["gold"],
            },
        )
        for i in range(count)
    ]


def searches_when_needed(task, messages):
    if task.metadata["kind"] == "unknown" and len(messages) == 1:
        return "<think>x : y</think><search>x</search>"
    return f"<think>x : y</think><answer>{'Sol' if task.task_id != 't0' else 'Inti'}</answer>"


async def play(count=5, **settings):
    return await evaluate(
        tasks(count),
        policy=ScriptedPolicy(searches_when_needed),
        environment=Desk,
        limits=Limits(),
        **{"rubric": RightOrWrong(), **settings},
    )


async def test_every_task_is_played_scored_and_measured():
    heard, rubric = [], RightOrWrong()
    found = await play(
        samples=3, chunk=2, step=80, rubric=rubric, progress=lambda *at: heard.append(at)
    )
    assert [g.group.trajectories[0].task.task_id for g in found.groups] == [
        f"t{i}" for i in range(5)
    ]
    assert {len(g.scores) for g in found.groups} == {3}
    assert len({g.group.group_id for g in found.groups}) == 5
    assert heard == [(done, 15) for done in range(1, 16)]
    assert rubric.steps == {80}
    measures = found.measures
    assert measures.accuracy.value == 4 / 5
    assert measures.j.value == 1.0
    assert measures.calls_needed.value == 1.0
    assert found.credits is None


async def test_credit_shows_what_an_update_would_have_pushed():
    def credit(groups, notes):
        one = TrajectoryCredit(advantages=(np.ones(1, np.float32),))
        return tuple(tuple(one for _ in g.scores) for g in groups)

    found = await play(credit=credit)
    assert [len(group) for group in found.credits] == [2] * 5


async def test_no_tasks_give_no_estimates():
    found = await play(count=0)
    assert found.groups == ()
    assert found.measures.accuracy.value is None
