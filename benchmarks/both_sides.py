"""What both sides of `against_trl.py` share: scenarios, tasks, the search, the reward, the clock.

Both processes build the same world from the same recipe, so that tasks, passages and tokens are the
same. This file imports neither TRL nor torch.
"""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from outfox.build import System, assemble
from outfox.core.config import load_recipe
from outfox.core.types import Task

TASKS = 8
SIBLINGS = 8
BATCH = TASKS * SIBLINGS
NEVER = "<|never|>"
"""The end token of a model that cannot sample it: it lies behind the model's vocabulary."""
STOPS = ("</search>", "</answer>")
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What both sides do in one comparison. Plain values: it travels as JSON."""

    name: str
    model: str
    """A folder of weights and tokenizer."""
    turns: int
    """Most policy messages in an episode; one turn has no use for a search."""
    new_tokens: int
    """Most tokens in one message."""
    window: int
    """Most tokens in an episode."""
    endless: bool = False
    """No message ends by itself, and each is taken for a query."""
    recipe: str = "when-to-search"
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One whole step: rollout, reward, update."""

    cpu: float
    """Seconds of CPU time of the process, all threads together."""
    tokens: int
    """Policy-owned tokens that the update trained on."""
    sampled: int
    """Policy-owned tokens of all episodes."""
    calls: float
    """Tool calls per episode."""
    reward: float
    """Mean over the episodes."""


class Clock:
    """CPU seconds of this process since the last look, or since `restart`."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self._begun = time.process_time()

    def look(self) -> float:
        begun = self._begun
        self.restart()
        return self._begun - begun


def assembled(scenario: Scenario) -> System:
    """World, tokenizer and limits of a scenario; on Outfox's side also all the rest."""
    settings = [
        "processes=1",
        "threads=1",
        "readings={}",  # TRL cannot write into a policy's message.
        f"model={{path: {json.dumps(scenario.model)}}}",
        "cold_start={steps: 0}",
        "replay={items: 0}",
        "frozen_spans=[]",
        "solvability={source: world}",
        "rubric=default",
        # TRL's defaults: the mean over all tokens, clipping at .2, no KL, no entropy bonus.
        "algorithm={type: dapo, clip_high: .2}",
        "trainer={type: local, learning_rate: 1e-6}",
        f"rollout={{tasks: {TASKS}, group_size: {SIBLINGS}, max_turns: {scenario.turns}, "
        f"max_tokens: {scenario.window}, max_new_tokens: {scenario.new_tokens}}}",
    ]
    return assemble(load_recipe(scenario.recipe, [*scenario.overrides, *settings]))


def gold(task: Task) -> list[str]:
    """The right answers in lower case; none where the question has no answer."""
    reference = task.reference
    if not isinstance(reference, dict):
        return [str(reference).lower()]
    named = [reference.get("answer"), *(reference.get("aliases") or ())]
    return [str(name).lower() for name in named if name is not None]


def answer_in(text: str) -> str:
    """What the policy answered, or nothing."""
    found = _ANSWER.findall(text)
    return found[-1] if found else ""


def points(answer: str, text: str, right: Sequence[str]) -> float:
    """1 for a right answer, plus up to a hundredth that the policy's text decides.

    The hundredth is there for the measurement: siblings get different rewards, so that there is
    something to train on in every group, whatever the policy can do.
    """
    exact = float(answer.strip().lower() in right)
    return exact + 0.01 * (zlib.crc32(text.encode()) / 2**32)
