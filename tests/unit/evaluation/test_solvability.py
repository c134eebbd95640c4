"""Closed-book probing: the policy cannot search, p0 is the share right, the table keeps it."""

from __future__ import annotations

import pytest

from outfox.core.errors import EngineError
from outfox.core.protocols import Sampling
from outfox.core.types import Group, Message, Observation, Opening, Task, Trajectory
from outfox.evaluation.solvability import probe, refresh, share_right
from outfox.policies.codecs.tags import Tags
from outfox.policies.engine_policy import EnginePolicy
from outfox.policies.tiny import build_tokenizer
from outfox.rewards.solvability import Solvability
from outfox.rollout.limits import Limits
from outfox.testing.engines import FakeEngine

TOKENIZER = build_tokenizer(["Peru", "Mali", "Sol", "Franc", "unknown", "?"])


class Silence:
    def __init__(self, task, seed):
        self._task = task

    async def reset(self):
        return Opening(messages=self._task.prompt)

    async def step(self, message):
        return Observation(done=True)

    def final(self):
        return None

    async def close(self):
        pass


def task(entity, answer):
    prompt = (Message(role="user", content=entity),)
    reference = {"type": "entity", "answer": answer}
    return Task(task_id=entity, prompt=prompt, reference=reference)


class Recording(FakeEngine):
    """Notes the sampling of every generation; siblings below `fails` fail."""

    def __init__(self, script, fails=0):
        super().__init__(script, TOKENIZER)
        self.samplings, self.fails = [], fails

    async def generate(self, session, token_ids, *, sampling, stop=()):
        self.samplings.append(sampling)
        if self.fails:
            self.fails -= 1
            raise EngineError("out of memory")
        return await super().generate(session, token_ids, sampling=sampling, stop=stop)


class Script:
    """Always right on Peru, right on every second try on Mali, abstains elsewhere."""

    def __init__(self):
        self.tries = 0

    def __call__(self, session, text):
        answer = "unknown"
        if "Peru" in text:
            answer = "Sol"
        elif "Mali" in text:
            self.tries += 1
            answer = "Franc" if self.tries % 2 else "Sol"
        return f"<answer>{answer}</answer>"


TASKS = (task("Peru", "Sol"), task("Mali", "Franc"), task("?", None))


def policy(engine):
    return EnginePolicy(engine, Tags(TOKENIZER), sampling=Sampling(max_tokens=16))


async def test_p0_is_the_share_right_without_searching():
    engine = Recording(Script())
    found = await probe(
        [*TASKS, TASKS[0]], policy=policy(engine), environment=Silence, limits=Limits(), k=4
    )
    assert found == {"Peru": 1.0, "Mali": 0.5, "?": 0.0}
    assert len(engine.samplings) == 12
    assert all("<search>" in sampling.forbidden for sampling in engine.samplings)


async def test_failures_outside_the_policy_are_left_out():
    engine = Recording(Script(), fails=3)
    found = await probe(TASKS[:1], policy=policy(engine), environment=Silence, limits=Limits(), k=4)
    assert found == {"Peru": 1.0}
    dead = Recording(Script(), fails=4)
    found = await probe(TASKS[:1], policy=policy(dead), environment=Silence, limits=Limits(), k=4)
    assert found == {"Peru": None}


@pytest.mark.parametrize(("step", "max_age", "probed"), [(5, 0, 0), (5, 5, 0), (6, 5, 1)])
async def test_refresh_probes_what_is_missing_or_too_old(step, max_age, probed):
    table, player = Solvability(), policy(Recording(Script()))
    settings = {"policy": player, "environment": Silence, "limits": Limits(), "k": 2}
    record = await refresh(table, TASKS[:1], policy_hash="a", step=0, **settings)
    assert table.label("Peru") == "undetermined", "before ranks have met"
    assert record() == 1
    later = {"policy_hash": "b", "step": step, "max_age": max_age}
    assert (await refresh(table, TASKS[:1], **later, **settings))() == probed
    assert table.label("Peru") == "solvable"
    known = table.probe("Peru").provenance
    assert (known.policy_hash, known.step) == (("b", step) if probed else ("a", 0))


def test_share_right_of_episodes_without_an_answer():
    silent = Trajectory(task=TASKS[0], group_id="g", sibling=0, turns=(), stop_reason="max_tokens")
    assert share_right(Group(group_id="g", trajectories=(silent,))) == 0.0
