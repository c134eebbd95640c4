"""Faults that users of other systems hit: runs. One test per kind.

A run that is killed: `tests/crash`, and `tests/integration/test_run.py`.
"""

import asyncio
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from outfox import cli
from outfox.build import assemble, reinforcement
from outfox.cli.display import Display
from outfox.cli.folders import create_folder
from outfox.cli.run import _drawn, _evaluate
from outfox.core.config import load_recipe
from outfox.core.errors import ConfigError
from outfox.core.types import EpisodeKey
from outfox.learning.checkpoint import save_checkpoint
from outfox.loop import train
from outfox.rollout.episode import run_episode
from outfox.store import shards

RECIPE = Path(__file__).parents[1] / "integration" / "recipes" / "small.yaml"
SMALL = ["model.layers=1", "model.hidden=32", "cold_start.steps=0", "replay.items=0", "steps=1"]


def made(*overrides: str):
    return assemble(load_recipe(RECIPE, [*SMALL, "solvability.source=world", *overrides]))


@pytest.fixture(scope="module")
def system():
    return made("sampling.temperature=.5", "eval.questions=4", "eval.samples=2", "eval.seed=7")


def test_the_same_run_name_with_another_recipe_is_refused_with_the_difference(
    system, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    recipe = dataclasses.replace(
        system.recipe, run=type(system.recipe.run)(dir=str(tmp_path / "r"))
    )
    folder = create_folder(dataclasses.replace(system, recipe=recipe))
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    words = [*SMALL, "solvability.source=world", "seed=4", f"run.dir={folder.path}"]
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", str(RECIPE), *words])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "seed: 0 -> 4" in told
    assert "eval.questions: 4 -> 18" in told
    assert "--resume" in told
    assert {path.name: path.read_bytes() for path in folder.path.iterdir()} == before


async def evaluated(system, name: str):
    made = await _evaluate(name, system, Display(), 0)
    played = [t for group in made.groups for t in group.group.trajectories]
    return shards.to_bytes(shards.trajectory_table(0, played)), made.measures


async def test_an_evaluation_made_twice_is_the_same_whatever_training_does(system):
    """Its settings are its own: training draws at temperature .5."""
    first, second = await evaluated(system, "after"), await evaluated(system, "after")
    assert first == second
    assert first[1].episodes == 4 * 2
    as_usual = dataclasses.replace(
        system, policy=dataclasses.replace(system.policy, sampling=made().policy.sampling)
    )
    assert system.policy.sampling != as_usual.policy.sampling
    assert await evaluated(as_usual, "after") == first
    assert await evaluated(system, "greedy") != first


def test_how_an_evaluation_is_drawn_is_told_with_its_result(system):
    told = {"questions": 4, "samples": 2, "temperature": 1.0, "seed": 7, "world": {}}
    assert _drawn("after", system.recipe) == told
    assert _drawn("greedy", system.recipe) == {**told, "samples": 1, "temperature": 0.0}


async def test_a_checkpoint_loads_with_from_pretrained_and_is_the_trained_model(tmp_path: Path):
    system = made("rollout.tasks=1", "rollout.group_size=2")
    lesson = reinforcement(system)
    async for _ in train(lesson.stage, lesson.trainer, system.engine, steps=1):
        pass
    folder = tmp_path / "step-000000"
    save_checkpoint(
        folder,
        trainer=lesson.trainer,
        tokenizer=system.model.tokenizer,
        cursor={"step": 0},
        parts={"rubric": system.rubric},
    )
    model = AutoModelForCausalLM.from_pretrained(folder)
    weights = dict(lesson.trainer.weights())
    found = model.state_dict()
    assert all(np.array_equal(found[name].numpy(), weight) for name, weight in weights.items())
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = "<think>a</think><search>q</search>"
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("engine={type: transformers, flash: true}", "engine.flash: unknown key"),
        ("trainer.tensor_parallel=2", "trainer.tensor_parallel: unknown key"),
        ("algorithm=ppo", "'ppo' needs a value head"),
        ("algorithm={type: grpo, credit: gae}", "algorithm.credit: 'gae' needs a value head"),
        ("algorithm={type: grpo, credit: 5}", "algorithm.credit: must be the name of a part"),
        ("algorithm={type: dapo, max_redraws: 3}", "'dapo' has no setting 'max_redraws'"),
        ("trainer.temperature=.7", "trainer.temperature is sampling.temperature"),
        ("frozen_spans=[drafts]", "frozen_spans: the codec names no span 'drafts'"),
        ("readings={query: confidence}", "readings: the codec does not pause at 'query'"),
        ("readings={draft: entropy}", "no reading is called 'entropy'"),
        ("tasks.format=verl", "set tasks.path"),
        ("corpus.path=x.jsonl", "when-to-search makes its own tasks and corpus"),
        ("tools=[search]", "a recipe gives a tool its settings and nothing else"),
        ("model.context=8", "model.context: must be greater than or equal to 16"),
        ("rubric.outcome.wrong=.nan", "rubric.outcome.wrong: must be a number, not NaN"),
        ("eval.questions=100000", "lower eval.questions"),
    ],
)
def test_an_option_that_nothing_would_use_is_refused_at_start(override: str, told: str):
    with pytest.raises(ConfigError) as refused:
        made(override)
    assert told in str(refused.value)


def test_demonstrations_to_replay_that_do_not_exist_are_refused_at_start():
    with pytest.raises(ConfigError, match=r"replay.names: .* none is called poems"):
        made("replay.items=4", "replay.names=[poems]")


async def test_every_wait_of_an_episode_has_a_name_and_a_deadline(system):
    """Of the environment and of the policy; `within` is the only way to wait (`tests/unit`)."""

    class Silent:
        async def reset(self):
            await asyncio.sleep(3600)

        async def close(self) -> None:
            pass

    (task,) = system.world.train.take(0, 1)
    trajectory = await run_episode(
        task,
        EpisodeKey(seed=0, step=0, group_id="g", sibling=0),
        policy=system.policy,
        environment=lambda task, seed: Silent(),
        limits=dataclasses.replace(system.limits, step_seconds=0.01),
    )
    assert trajectory.stop_reason == "error"
    assert f"environment.reset of {task.task_id} did not answer within 0.01 s" in trajectory.error
