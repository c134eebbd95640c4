"""Trajectories for tests, and fakes and conformance checks of `Signal` and `Rubric`.

    trajectory(task, ["<search>Chad currency</search>", [document], "<answer>CFA franc</answer>"])

A string is one policy turn in Search-R1's four tags; what follows it is what the environment
answered: documents, a ToolResult, or nothing. Tokens are words, so masks can be counted by eye.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from outfox.core.ledger import Ledger, Owner, Segment
from outfox.core.protocols import Family, Rubric, Signal, SignalContext, Stateful
from outfox.core.results import Score, ScoredGroup, SignalResult, Value
from outfox.core.types import (
    JSON,
    Action,
    Document,
    Group,
    Message,
    Observation,
    ParseError,
    StopReason,
    Task,
    ToolCall,
    ToolResult,
    Trajectory,
    Turn,
)

Move: TypeAlias = str | Document | ToolResult | Sequence[Document]
"""One policy turn, or what came back."""

_THINK = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL)
_FORGED = re.compile(r"</?information>|\[(?:sure|unsure)\]")
_ACTION = re.compile(r"<(search|answer)>(.*?)</\1>", re.DOTALL)
_CITED = re.compile(r"\s*\[([\w-]+)\]")


def task(task_id: str = "t", question: str = "", reference: JSON = None, **metadata: JSON) -> Task:
    """A task with its labels as keywords."""
    return Task(
        task_id=task_id,
        prompt=(Message(role="user", content=question),),
        reference=reference,
        metadata={"question": question, **metadata},
    )


def trajectory(
    task: Task,
    moves: Sequence[Move],
    *,
    group_id: str = "g",
    sibling: int = 0,
    stop_reason: StopReason | None = None,
    error: str | None = None,
    final_state: JSON = None,
) -> Trajectory:
    """An episode from its moves. `stop_reason` defaults to what the moves came to."""
    turns: list[Turn] = []
    ledger = Ledger().append(_segment("prompt", task.prompt[-1].content if task.prompt else ""))
    for index, move in enumerate(moves):
        if not isinstance(move, str):
            continue
        turn, seen = _turn(move, moves[index + 1 : index + 2], len(turns))
        turns.append(turn)
        ledger = ledger.append(_segment("policy", move)).append(_segment("environment", seen))
    reason: StopReason = "max_turns"
    if error is not None:
        reason = "error"
    elif turns and turns[-1].action and turns[-1].action.answer is not None:
        reason = "answer"
    elif turns and turns[-1].error:
        reason = "malformed"
    return Trajectory(
        task=task,
        group_id=group_id,
        sibling=sibling,
        turns=tuple(turns),
        stop_reason=stop_reason or reason,
        ledgers=(ledger,),
        final_state=final_state,
        error=error,
    )


def group(task: Task, *siblings: Sequence[Move], group_id: str = "g") -> Group:
    """Siblings from their moves."""
    return Group(
        group_id=group_id,
        trajectories=tuple(
            trajectory(task, moves, group_id=group_id, sibling=index)
            for index, moves in enumerate(siblings)
        ),
    )


def _turn(text: str, after: Sequence[Move], index: int) -> tuple[Turn, str]:
    """The turn, and the environment text that follows it."""
    spoken = _THINK.sub("", text)
    flags = ("forged_observation",) if _FORGED.search(text) else ()
    found = _ACTION.findall(_FORGED.sub("", spoken))
    answers = [content for tag, content in found if tag == "answer"]
    if len(answers) > 1:
        error = ParseError(fault="several_answers", message="write one answer")
        return Turn(text=text, error=error, flags=flags), ""
    if not found:
        error = ParseError(fault="no_action", message="write <search> or <answer>")
        return Turn(text=text, error=error, flags=flags), ""
    tag, content = found[0]
    if tag == "answer":
        cited = tuple(_CITED.findall(content))
        answer = _CITED.sub("", content).strip()
        return Turn(text=text, action=Action(answer=answer, citations=cited), flags=flags), ""
    call = ToolCall(id=f"c{index}", name="search", arguments={"query": content.strip()})
    result = _result(call, after[0] if after and not isinstance(after[0], str) else ())
    observation = Observation(
        messages=(Message(role="tool", content=result.content, tool_call_id=call.id),),
        results=(result,),
    )
    turn = Turn(text=text, action=Action(calls=(call,)), observation=observation, flags=flags)
    return turn, result.content


def _result(call: ToolCall, came_back: Document | ToolResult | Sequence[Document]) -> ToolResult:
    if isinstance(came_back, ToolResult):
        return came_back
    documents = (came_back,) if isinstance(came_back, Document) else tuple(came_back)
    return ToolResult(
        tool_call_id=call.id,
        name=call.name,
        content=" ".join(document.text for document in documents),
        documents=documents,
        status="ok" if documents else "empty",
    )


def _segment(owner: Owner, text: str) -> Segment:
    """One token per word; ids only count."""
    words = len(text.split())
    policy = owner == "policy"
    return Segment(
        owner=owner,
        token_ids=np.arange(words, dtype=np.int64),
        logprobs=np.full(words, -1.0, np.float32) if policy else None,
        policy_version=0 if policy else None,
    )


def context(group: Group, **known: JSON) -> SignalContext:
    """A context in which every sibling is right and supported, unless told otherwise."""
    every = tuple(True for _ in group.trajectories)
    return SignalContext(
        group=group,
        solvable=known.get("solvable", "undetermined"),
        must_ground=known.get("must_ground", False),
        right=known.get("right", every),
        supported=known.get("supported", every),
        settings=known.get("settings", {}),
    )


# -- fakes ----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class FakeSignal:
    """Returns `result`, or the results by sibling where there are several; fits `Signal`."""

    name: str = "fake"
    results: tuple[SignalResult, ...] = (Value(value=1.0),)
    range: tuple[float, float] = (0.0, 1.0)
    family: Family = "outcome"
    scope: Literal["trajectory", "group"] = "trajectory"

    def __call__(self, trajectory: Trajectory, context: SignalContext) -> SignalResult:
        return self.results[trajectory.sibling % len(self.results)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeRubric:
    """Gives totals by sibling; fits `Rubric`."""

    totals: tuple[float | None, ...] = (1.0, 0.0)
    bounds: tuple[float, float] = (0.0, 1.0)
    results: dict[str, SignalResult] = field(default_factory=lambda: dict[str, SignalResult]())

    def score(self, group: Group, *, step: int) -> tuple[Score, ...]:
        totals = (self.totals[t.sibling % len(self.totals)] for t in group.trajectories)
        return tuple(
            Score(
                total=total,
                outcome="failed" if total is None else "right" if total > 0 else "wrong",
                results=self.results,
                parts={} if total is None else {"fake": total},
            )
            for total in totals
        )

    def after_step(self, groups: Sequence[ScoredGroup]) -> None:
        """Nothing to learn."""


# -- conformance ----------------------------------------------------------------------------------
def check_signal(signal: Signal, groups: Sequence[Group]) -> None:
    """What every signal keeps. Raises AssertionError.

    It always returns a typed result, inside its range, the same when asked again and whatever the
    order of the siblings, and never raises.
    """
    low, high = signal.range
    assert signal.name, "a signal has a name"
    assert low < high, f"{signal.name}: range {signal.range} is empty"
    for each in groups:
        told = context(each)
        for member in each.trajectories:
            result = signal(member, told)
            assert isinstance(result, SignalResult), f"{signal.name} returned {result!r}"
            assert signal(member, told) == result, f"{signal.name} differs when asked again"
            if isinstance(result, Value):
                assert low <= result.value <= high, f"{signal.name}: {result} outside {low, high}"
        turned = Group(group_id=each.group_id, trajectories=tuple(reversed(each.trajectories)))
        for member in each.trajectories:
            assert signal(member, context(turned)) == signal(member, told), (
                f"{signal.name} depends on the order of siblings"
            )


def check_rubric(rubric: Rubric, groups: Sequence[Group], *, step: int = 0) -> None:
    """What every rubric keeps. Raises AssertionError.

    One score per trajectory; totals inside `bounds`; parts sum to the total; the same when asked
    again; None only where it failed; siblings may change places.
    """
    low, high = rubric.bounds
    for each in groups:
        scores = rubric.score(each, step=step)
        assert len(scores) == len(each.trajectories), "one score per trajectory"
        assert rubric.score(each, step=step) == scores, "scored again, it differs"
        for score in scores:
            assert (score.total is None) == (score.outcome == "failed"), score
            if score.total is not None:
                assert low - 1e-9 <= score.total <= high + 1e-9, (score.total, rubric.bounds)
                assert math.isclose(math.fsum(score.parts.values()), score.total, abs_tol=1e-9)
        turned = Group(group_id=each.group_id, trajectories=tuple(reversed(each.trajectories)))
        totals = [score.total for score in reversed(rubric.score(turned, step=step))]
        assert totals == [score.total for score in scores], "the order of siblings matters"
    if isinstance(rubric, Stateful):
        state = rubric.state()
        rubric.restore(state)
        assert rubric.state() == state, "restore(state()) changes the state"
