"""Outfox's side of `against_trl.py`: its weights, its steps.

The loop is Outfox's own, `outfox.loop.train`, with the reward of both sides as its rubric.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from both_sides import NEVER, Clock, Scenario, Step, assembled, gold, points
from transformers import LlamaConfig, LlamaForCausalLM

from outfox.build import assemble, imitation, reinforcement
from outfox.core.config import load_recipe
from outfox.core.ledger import Ints, Span
from outfox.core.protocols import Codec, Parsed, Rendered
from outfox.core.results import Score, ScoredGroup, StepResult, Value
from outfox.core.types import Action, Group, Message, ToolCall, ToolSpec
from outfox.loop import Reinforce, train
from outfox.policies.tiny import save_folder

PARAMETERS = 850_000
"""Of the random model."""
LAYERS, HIDDEN = 4, 128


# -- weights --------------------------------------------------------------------------------------
async def cold_started(folder: Path, *, steps: int, recipe: str, overrides: Sequence[str]) -> Path:
    """A policy that writes whole messages, after a short cold start of the recipe."""
    settings = [
        "processes=1",
        "threads=1",
        "readings={}",
        "replay={items: 0}",
        f"cold_start.steps={steps}",
        "cold_start.trainer={learning_rate: 2e-3, betas: [.9, .95], warmup: 20, "
        f"schedule: cosine, schedule_steps: {steps}, schedule_end: .1}}",
    ]
    system = assemble(load_recipe(recipe, [*overrides, *settings]))
    lesson = imitation(system)
    async for _ in train(lesson.stage, lesson.trainer, steps=lesson.steps):
        pass
    save_folder(system.model.model, system.model.tokenizer, folder)
    return folder


def random_weights(folder: Path, scenario: Scenario) -> Path:
    """A random Llama that reads the scenario's tokens and never samples an end."""
    tokenizer = assembled(scenario).model.tokenizer
    model = _llama(len(tokenizer), intermediate=1)
    missing = PARAMETERS - sum(weight.numel() for weight in model.parameters())
    # Three matrices of a layer have one column or row more.
    model = _llama(len(tokenizer), intermediate=1 + missing // (3 * HIDDEN * LAYERS))
    tokenizer.add_special_tokens({"eos_token": NEVER})
    save_folder(model, tokenizer, folder)
    return folder


def _llama(vocabulary: int, intermediate: int) -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=HIDDEN,
            intermediate_size=intermediate,
            num_hidden_layers=LAYERS,
            num_attention_heads=4,
            num_key_value_heads=1,
            max_position_embeddings=512,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=0,
        )
    )


# -- steps -----------------------------------------------------------------------------------------
class Points:
    """The reward of both sides as a Rubric."""

    bounds = (0.0, 1.01)

    def score(self, group: Group, *, step: int) -> tuple[Score, ...]:
        return tuple(
            Score(
                total=total,
                outcome="right" if total >= 1 else "wrong",
                results={"points": Value(value=total)},
                parts={"points": total},
            )
            for total in (
                points(played.answer or "", played.policy_text, gold(played.task))
                for played in group.trajectories
            )
        )

    def after_step(self, groups: Sequence[ScoredGroup]) -> None:
        """Nothing to learn."""


@dataclass(frozen=True, slots=True)
class Endless:
    """A codec that stops nowhere and reads whatever was written as a query."""

    inner: Codec
    stop: tuple[str, ...] = ()

    def render(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Rendered:
        return self.inner.render(messages, tools)

    def extend(self, messages: Sequence[Message], limit: int | None = None) -> Rendered:
        return self.inner.extend(messages, limit)

    def encode(self, text: str) -> Ints:
        return self.inner.encode(text)

    def decode(self, token_ids: Ints) -> str:
        return self.inner.decode(token_ids)

    def parse(self, text: str, *, finished: bool = True, after_observation: bool = False) -> Parsed:
        if not finished:
            return Parsed()
        call = ToolCall(id="", name="search", arguments={"query": text})
        return Parsed(action=Action(calls=(call,)))

    def write(self, action: Action, thought: str = "") -> str:
        return self.inner.write(action, thought)

    def spans(
        self, token_ids: Ints, *, after_observation: bool, continued: bool = False
    ) -> tuple[Span, ...]:
        return self.inner.spans(token_ids, after_observation=after_observation, continued=continued)


async def outfox_steps(scenario: Scenario, steps: int) -> AsyncIterator[tuple[Step, StepResult]]:
    """Whole steps of Outfox, measured from one result to the next."""
    system = assembled(scenario)
    lesson = reinforcement(system)
    stage = lesson.stage
    assert isinstance(stage, Reinforce)
    stage = replace(stage, rubric=Points())
    if scenario.endless:
        policy = replace(system.policy, codec=Endless(system.codec))
        stage = replace(stage, policy=policy)
    clock = Clock()
    async for result in train(stage, lesson.trainer, system.engine, steps=steps):
        yield _counted(result, clock.look()), result
        clock.restart()


def _counted(result: StepResult, cpu: float) -> Step:
    scored = [
        (trajectory, credit, score.total or 0.0)
        for group, credits in zip(result.groups, result.credits, strict=True)
        for trajectory, credit, score in zip(
            group.group.trajectories, credits, group.scores, strict=True
        )
    ]
    return Step(
        cpu=cpu,
        # Siblings with equal totals are sampled and left out of the update.
        tokens=sum(t.policy_tokens for t, credit, _ in scored if credit.left_out is None),
        sampled=sum(t.policy_tokens for t, _, _ in scored),
        calls=sum(len(t.results) for t, _, _ in scored) / len(scored),
        reward=sum(total for _, _, total in scored) / len(scored),
    )


async def sufficient(scenario: Scenario, steps: int) -> int:
    """The limit on a message that 99 in 100 of those that end by themselves keep to."""
    lengths: list[int] = []
    async for _, result in outfox_steps(scenario, steps):
        turns = [
            t for g in result.groups for episode in g.group.trajectories for t in episode.turns
        ]
        for turn in turns:
            if turn.completions[-1].finish_reason != "length":
                lengths.append(sum(len(made.token_ids) for made in turn.completions))
    if not lengths:
        raise SystemExit("this policy ends no message by itself: train its cold start for longer")
    return sorted(lengths)[int(0.99 * (len(lengths) - 1))]
