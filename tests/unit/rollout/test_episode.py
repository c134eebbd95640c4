"""One episode: stop reasons, feedback, readings, failures, deadlines, closing."""

import asyncio
import logging
from collections import Counter

import numpy as np
import pytest

from outfox.core.errors import ContractError
from outfox.core.ledger import Completion, Span
from outfox.core.types import (
    Action,
    Draft,
    EpisodeKey,
    Message,
    Observation,
    Opening,
    ParseError,
    Task,
    ToolCall,
)
from outfox.rollout.episode import environment_seed, run_episode
from outfox.rollout.limits import Limits
from outfox.rollout.readings import confidence
from outfox.testing.policies import FakePolicy

KEY = EpisodeKey(seed=0, step=0, group_id="0/0/t", sibling=1)
TASK = Task(task_id="t", prompt=(Message(role="user", content="Q"),), reference="Paris")
CALL = ToolCall(id="call-0-0", name="search", arguments={"query": "q"})
CALLS = Draft(text="<search>q</search>", action=Action(calls=(CALL,)))
ANSWER = Draft(text="<answer>Paris [d1]</answer>", action=Action(answer="Paris", citations=("d1",)))
WRONG = Draft(text="hm", error=ParseError(fault="no_action", message="Search or answer."))
PAGE = Observation(messages=(Message(role="tool", content="page"),))


class World:
    """An environment of given answers; an answer that is an exception is raised."""

    def __init__(self, *answers, hang: str = "", fail: str = ""):
        self._answers, self._hang, self._fail = list(answers), hang, fail
        self.asked: Counter[str] = Counter()
        self.told: list[Message] = []
        self.seed: int | None = None

    def __call__(self, task: Task, seed: int) -> "World":
        self.seed = seed
        return self

    async def _enter(self, name: str) -> None:
        self.asked[name] += 1
        if name == self._hang:
            await asyncio.sleep(60)
        if name == self._fail:
            raise RuntimeError(f"{name} broke")

    async def reset(self) -> Opening:
        await self._enter("reset")
        return Opening(messages=TASK.prompt)

    async def step(self, message: Message) -> Observation:
        await self._enter("step")
        self.told.append(message)
        return self._answers.pop(0) if self._answers else Observation(done=not message.tool_calls)

    def final(self):
        self.asked["final"] += 1
        return {"told": len(self.told)}

    async def close(self) -> None:
        await self._enter("close")


async def play(drafts, world: World | None = None, readings=None, **limits):
    world = world or World()
    policy = FakePolicy(drafts=drafts)
    trajectory = await run_episode(
        TASK, KEY, policy=policy, environment=world, limits=Limits(**limits), readings=readings
    )
    assert policy.asked["close"] == policy.asked["begin"]
    assert world.asked["close"] == 1
    return trajectory, policy, world


# -- how it ends ----------------------------------------------------------------------------------
async def test_an_answer_ends_the_episode_and_the_environment_hears_it():
    trajectory, policy, world = await play([CALLS, ANSWER], World(PAGE, Observation(done=True)))
    assert trajectory.stop_reason == "answer"
    assert (trajectory.answer, trajectory.citations) == ("Paris", ("d1",))
    assert trajectory.final_state == {"told": 2}
    assert (trajectory.group_id, trajectory.sibling) == ("0/0/t", 1)
    calls, answer = world.told
    assert (calls.content, calls.tool_calls) == ("<search>q</search>", (CALL,))
    assert (answer.content, answer.tool_calls) == ("Paris", ())
    assert policy.asked["observe"] == 1


async def test_the_environment_may_end_it():
    trajectory, policy, _ = await play([CALLS], World(Observation(done=True)))
    assert trajectory.stop_reason == "done"
    assert trajectory.answer is None
    assert policy.asked["observe"] == 0


async def test_turns_run_out():
    trajectory, policy, world = await play([CALLS] * 3, World(PAGE, PAGE, PAGE), max_turns=3)
    assert trajectory.stop_reason == "max_turns"
    assert len(trajectory.turns) == 3
    assert world.asked["step"] == 3
    assert policy.asked["observe"] == 2


@pytest.mark.parametrize("allowed", [0, 1, 2])
async def test_malformed_turns_are_fed_back_until_there_are_too_many(allowed: int):
    trajectory, policy, world = await play([WRONG] * 9, max_parse_errors=allowed)
    assert trajectory.stop_reason == "malformed"
    assert len(trajectory.turns) == allowed + 1
    assert policy.asked["observe"] == allowed
    assert world.asked["step"] == 0
    told = [turn.observation for turn in trajectory.turns[:-1]]
    assert [o.messages for o in told] == [
        (Message(role="user", content="Search or answer."),)
    ] * allowed
    assert trajectory.turns[-1].observation is None


# -- readings -------------------------------------------------------------------------------------
def paused(name: str, *logprobs: float) -> Draft:
    completion = Completion(
        token_ids=np.arange(len(logprobs)),
        logprobs=np.array(logprobs, np.float32),
        policy_version=0,
        finish_reason="stop",
    )
    spans = (
        Span(name=name, start=0, end=1),
        Span(name=name, start=1, end=len(logprobs)),
        Span(name="thought", start=0, end=len(logprobs)),
    )
    return Draft(text="so far", completion=completion, paused=name, spans=spans)


@pytest.mark.parametrize("name", ["draft", "note"])
async def test_a_reading_of_the_last_span_is_inserted_and_recorded(name: str):
    drafts = [paused(name, -9.0, -0.1, -0.2), paused(name, -0.1, -0.4, -0.4), ANSWER]
    trajectory, policy, _ = await play(drafts, readings={name: confidence})
    (turn,) = trajectory.turns
    assert turn.readings == ("[sure]", "[unsure]")
    assert policy.asked["insert [sure]"] == policy.asked["insert [unsure]"] == 1
    assert len(turn.completions) == 2
    assert turn.text == ANSWER.text


@pytest.mark.parametrize("readings", [{}, {"note": confidence}])
async def test_without_a_reading_of_its_own_the_turn_just_goes_on(readings):
    drafts = [paused("draft", -1.0, -1.0), ANSWER]
    trajectory, policy, _ = await play(drafts, readings=readings)
    assert trajectory.turns[0].readings == ()
    assert policy.asked["act"] == 2


async def test_a_turn_that_spends_its_budget_in_thought_is_malformed():
    drafts = [paused("draft", -1.0, -1.0), WRONG, ANSWER]
    trajectory, _, _ = await play(drafts, max_new_tokens=2, readings={"draft": confidence})
    assert "too long" in trajectory.turns[0].error.message
    assert trajectory.answer == "Paris"


# -- faults outside the policy --------------------------------------------------------------------
@pytest.mark.parametrize("where", ["reset", "step"])
async def test_an_exception_of_the_environment_is_an_error_and_turns_are_kept(where: str):
    trajectory, _, world = await play([CALLS], World(fail=where))
    assert trajectory.stop_reason == "error"
    assert trajectory.error == f"RuntimeError: {where} broke"
    assert [turn.text for turn in trajectory.turns] == [CALLS.text] * (where == "step")
    assert world.asked["final"] == 0


async def test_an_exception_of_the_policy_is_an_error_too():
    trajectory, _, _ = await play([CALLS], World(PAGE))  # the second act has no draft
    assert trajectory.stop_reason == "error"
    assert "StopIteration" in trajectory.error
    assert trajectory.turns[0].observation == PAGE


@pytest.mark.parametrize("where", ["reset", "step"])
async def test_a_stuck_environment_gives_an_error_that_names_the_wait(where: str):
    trajectory, _, _ = await play([CALLS], World(hang=where), step_seconds=0.01)
    assert trajectory.stop_reason == "error"
    assert f"environment.{where} of t" in trajectory.error
    assert "within 0.01 seconds" in trajectory.error


async def test_a_stuck_policy_gives_an_error_that_names_the_wait():
    class Stuck(FakePolicy):
        def begin(self, key, task, opening):
            talk = super().begin(key, task, opening)
            talk.act = lambda **_: asyncio.sleep(60)
            return talk

    trajectory = await run_episode(
        TASK, KEY, policy=Stuck(drafts=[]), environment=World(), limits=Limits(act_seconds=0.01)
    )
    assert "policy.act of t did not answer within 0.01 seconds" in trajectory.error


async def test_a_failing_close_is_logged_and_the_episode_stands(caplog):
    with caplog.at_level(logging.WARNING):
        trajectory, _, _ = await play([ANSWER], World(fail="close"))
    assert trajectory.stop_reason == "answer"
    assert "environment.close of t failed: RuntimeError: close broke" in caplog.text


async def test_a_factory_that_fails_is_an_error():
    def factory(task, seed):
        raise OSError("no database")

    trajectory = await run_episode(
        TASK, KEY, policy=FakePolicy(drafts=[]), environment=factory, limits=Limits()
    )
    assert (trajectory.stop_reason, trajectory.error) == ("error", "OSError: no database")


async def test_a_broken_contract_is_raised_after_everything_is_closed():
    with pytest.raises(ContractError, match="is neither"):
        await play([Draft(text="nothing")], world := World())
    assert world.asked["close"] == 1


async def test_cancelling_passes_through_and_closes():
    world, policy = World(hang="step"), FakePolicy(drafts=[CALLS])
    task = asyncio.create_task(
        run_episode(TASK, KEY, policy=policy, environment=world, limits=Limits())
    )
    while not world.asked["step"]:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert world.asked["close"] == policy.asked["close"] == 1


# -- the rest -------------------------------------------------------------------------------------
async def test_a_rewritten_history_reaches_the_conversation():
    rewritten = Observation(history=TASK.prompt)
    _, policy, _ = await play([CALLS, ANSWER], World(rewritten))
    assert (policy.asked["rewrite"], policy.asked["observe"]) == (1, 0)


def test_siblings_face_the_same_world_and_nobody_else_does():
    def seed(**other):
        settings = {"seed": 0, "step": 0, "group_id": "g", "sibling": 0, **other}
        return environment_seed(EpisodeKey(**settings))

    assert seed() == seed(sibling=5)
    assert len({seed(), seed(seed=1), seed(step=1), seed(group_id="h")}) == 4
