"""What the parts of a recipe get from its other keys. At most one step is trained."""

from pathlib import Path

import numpy as np
import pytest
import torch

from outfox.build import assemble, imitation, reinforcement
from outfox.core.config import load_recipe
from outfox.core.errors import ConfigError
from outfox.loop import collect, train

RECIPE = Path(__file__).parent / "recipes" / "small.yaml"


def made(*overrides: str):
    return assemble(load_recipe(RECIPE, ["steps=1", "rubric=default", *overrides]))


def test_an_override_goes_into_a_named_rubric():
    whole, changed = made(), made("rubric.if_right.cap=0.3")
    assert whole.rubric.tree.if_right.cap != 0.3
    assert changed.rubric.tree.if_right.cap == 0.3
    assert changed.rubric.tree.if_right.deduct == whole.rubric.tree.if_right.deduct
    assert changed.rubric.tree.outcome == whole.rubric.tree.outcome


async def test_a_cold_start_has_no_divergence_from_a_reference():
    """Whatever the algorithm's `kl_coef`: there is no reference to begin from."""
    updated = []
    for kl_coef in ("0", "0.5"):
        system = made(
            f"algorithm={{type: grpo, kl_coef: {kl_coef}}}",
            "cold_start.steps=1",
            "cold_start.items=2",
        )
        lesson = imitation(system)
        assert not lesson.trainer.needs
        (step,) = [each async for each in train(lesson.stage, lesson.trainer, steps=lesson.steps)]
        updated.append((step.report.metrics["imitation/nll"], dict(lesson.trainer.weights())))
    assert reinforcement(system).trainer.needs == {"ref_logprobs"}
    (plain, weights), (with_kl, others) = updated
    assert plain == with_kl
    assert all(torch.equal(weights[name], others[name]) for name in weights)


async def test_the_trainer_scores_at_the_temperature_of_the_episodes():
    """Else its logprobs are not those that the tokens were drawn with."""
    system = made(
        "sampling.temperature=0.5",
        "trainer.recompute_old_logprobs=true",
        "rollout={tasks: 4, group_size: 4, max_new_tokens: 8}",
        "solvability.source=world",
        "replay.items=0",
    )
    lesson = reinforcement(system)
    samples = (await collect(lesson.stage, 0)).samples
    notes = lesson.trainer.annotate(samples, frozenset({"old_logprobs"}))
    assert len(samples) >= 4
    for sample, again in zip(samples, notes.old_logprobs, strict=True):
        written = sample.loss_mask > 0
        assert written.sum() >= 2
        np.testing.assert_allclose(again[written], sample.rollout_logprobs[written], atol=1e-3)


def test_an_evaluation_may_have_a_noisier_world_but_no_other_questions():
    system = made("eval.world.noise.error=0.5", "world.noise.error=0.1")
    assert system.evaluated.held_out == system.world.held_out
    assert system.evaluated.environment is not system.world.environment
    assert system.config["eval"]["world"] == {"noise": {"error": 0.5}}
    assert system.config["world"]["noise"]["error"] == 0.1
    plain = made()
    assert plain.evaluated is plain.world


@pytest.mark.parametrize(
    ("override", "rule"),
    [
        ("eval.world.noise.eror=0.1", r"eval\.world\.noise\.eror: unknown key"),
        ("eval.world.nois=1", r"eval\.world\.nois: unknown key"),
        ("eval.world.type=rows", r"eval\.world"),
        ("eval.world.seed=3", "eval.world changes what answers a call, not the questions"),
        ("eval.world.language=zh", "not the questions"),
    ],
)
def test_an_evaluation_in_a_wrong_world_is_refused(override, rule):
    with pytest.raises(ConfigError, match=rule):
        made(override)
