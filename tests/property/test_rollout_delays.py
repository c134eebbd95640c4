"""Random tool delays change who shares a batch with whom, and nothing else: the same bits."""

import asyncio
import random
from collections import Counter

import numpy as np
import pytest
import torch

from outfox.core.protocols import Sampling
from outfox.core.types import Group, Message, Observation, Opening, Task
from outfox.policies.codecs.tags import Tags
from outfox.policies.engine_policy import EnginePolicy
from outfox.policies.engines.transformers import TransformersEngine
from outfox.policies.tiny import TAGS, build_model, build_tokenizer
from outfox.rollout.group import RolloutPlan, rollout
from outfox.rollout.limits import Limits
from outfox.rollout.readings import confidence

WORDS = ("Lyon", "France", "country", "currency", "Euro")
TOKENIZER = build_tokenizer(WORDS)
TASKS = [
    Task(
        task_id=f"t{k}",
        prompt=(Message(role="user", content=f"{word} country"),),
        reference="x",
    )
    for k, word in enumerate(WORDS)
]


def talkative_model() -> torch.nn.Module:
    """A random model whose head knows only tags and words, so that it searches and answers."""
    model = build_model(TOKENIZER, hidden=32, heads=2, layers=2, intermediate=48)
    torch.manual_seed(3)
    said = [TOKENIZER.convert_tokens_to_ids(tag) for tag in TAGS if "information" not in tag]
    said += TOKENIZER.encode("Lyon Euro : France", add_special_tokens=False)
    head = torch.zeros_like(model.get_output_embeddings().weight)
    head[said] = torch.randn(len(said), 32)
    model.set_output_embeddings(torch.nn.Linear(32, len(TOKENIZER), bias=False))
    model.get_output_embeddings().weight = torch.nn.Parameter(head)
    return model


class World:
    """Answers every call with its query, after the given delay in seconds."""

    def __init__(self, task: Task, delays: random.Random | None):
        self._task, self._delays = task, delays

    async def reset(self) -> Opening:
        await self._wait()
        return Opening(messages=self._task.prompt)

    async def step(self, message: Message) -> Observation:
        await self._wait()
        if not message.tool_calls:
            return Observation(done=True)
        query = str(message.tool_calls[0].arguments["query"])
        return Observation(messages=(Message(role="tool", content=f"{query} : Euro"),))

    async def _wait(self) -> None:
        if self._delays is not None and self._delays.random() < 0.7:
            await asyncio.sleep(self._delays.random() * 0.02)

    def final(self) -> None:
        return None

    async def close(self) -> None:
        pass


async def roll(model: torch.nn.Module, delays: random.Random | None) -> tuple[Group, ...]:
    engine = TransformersEngine(model, TOKENIZER, max_rows=12)
    return await rollout(
        TASKS,
        step=0,
        seed=3,
        plan=RolloutPlan(group_size=6),
        policy=EnginePolicy(engine, Tags(TOKENIZER, pauses=True), sampling=Sampling()),
        environment=lambda task, seed: World(task, delays),
        limits=Limits(max_turns=4, max_new_tokens=40, max_tokens=300),
        readings={"draft": confidence},
    )


@pytest.fixture(scope="module")
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


async def test_random_tool_delays_give_identical_trajectories(threads):
    model = talkative_model()
    undelayed = await roll(model, None)
    played = [trajectory for group in undelayed for trajectory in group.trajectories]
    assert sum(len(trajectory.calls) for trajectory in played) >= 20  # tools were really called
    assert len(Counter(trajectory.policy_text for trajectory in played)) >= 10
    assert any(turn.readings for trajectory in played for turn in trajectory.turns)
    for seed in range(2):
        delayed = await roll(model, random.Random(seed))
        for expected, group in zip(undelayed, delayed, strict=True):
            for left, right in zip(expected.trajectories, group.trajectories, strict=True):
                assert right.error is None
                assert (left.stop_reason, left.policy_text) == (
                    right.stop_reason,
                    right.policy_text,
                )
                (one,), (two,) = left.ledgers, right.ledgers
                np.testing.assert_array_equal(one.token_ids, two.token_ids)
                assert one.logprobs.tobytes() == two.logprobs.tobytes()
                assert one.spans == two.spans
