"""The local trainer learns, reports, resumes and refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from outfox.core.errors import ContractError, DataError
from outfox.core.ledger import Span
from outfox.core.results import Batch
from outfox.learning.batching.packing import pack
from outfox.learning.losses.mixed import MixedLoss, Ramp
from outfox.learning.trainers.local import LocalTrainer
from outfox.policies.logprobs import token_logprobs
from outfox.testing.learning import sample


def bits(trainer):
    return {name: w.numpy().tobytes() for name, w in trainer.weights().items()}


def one_step(*samples):
    return (Batch(micro=(samples,)),)


def hidden_gradients(model, batches, trainer):
    """Per micro-batch: the gradient that reaches the last hidden states, [B, T]."""
    kept = []

    def keep(module, given, output):
        output.retain_grad()
        kept.append(output)

    handle = model.model.norm.register_forward_hook(keep)
    trainer.update(batches)
    handle.remove()
    return [output.grad.abs().sum(-1) for output in kept]


def test_the_gradient_through_observation_tokens_is_exactly_zero(tiny):
    model = tiny()
    trainer = LocalTrainer(model, MixedLoss(entropy={"all": Ramp(start=0.1)}), learning_rate=1e-3)
    (gradient,) = hidden_gradients(model, one_step(sample("ppaaaoobb")), trainer)
    reached = gradient[0] != 0
    # The state at t predicts token t + 1: policy tokens are 2, 3, 4 and 7, 8.
    assert torch.nonzero(reached)[:, 0].tolist() == [1, 2, 3, 6, 7]


def test_eos_is_trained_and_padding_is_not_where_they_have_the_same_id(tiny):
    model = tiny()
    trainer = LocalTrainer(model, learning_rate=1e-3)
    batches = one_step(sample("ppaaaaaaa"), sample("ppae", seed=1))
    _, gradient = hidden_gradients(model, batches, trainer)  # A forward pass per length.
    assert torch.nonzero(gradient[0] != 0)[:, 0].tolist() == [1, 2]


def test_imitation_drives_the_loss_down(tiny):
    trainer = LocalTrainer(tiny(), learning_rate=1e-2)
    batches = one_step(*(sample("ppaaae", objective="imitation", seed=k) for k in range(4)))
    losses = [trainer.update(batches).metrics["loss"] for _ in range(60)]
    assert losses[0] > 2.5
    assert losses[-1] < 0.3


def test_reinforce_on_a_bandit_raises_the_right_tokens_probability(tiny):
    model = tiny()
    trainer = LocalTrainer(model, MixedLoss(aggregation="dapo"), learning_rate=1e-2)
    draw = np.random.default_rng(0)
    prompt, right = 3, 7

    def chances():
        with torch.no_grad():
            return model(torch.tensor([[prompt]])).logits[0, -1].double().softmax(-1).numpy()

    assert chances()[right] < 0.1
    for _ in range(40):
        arms = draw.choice(16, size=32, p=chances())
        totals = (arms == right) - np.mean(arms == right)
        pulls = [
            replace(sample("pa", advantage=float(a)), token_ids=np.array([prompt, arm]))
            for arm, a in zip(arms, totals, strict=True)
        ]
        trainer.update(pack(pulls, max_tokens_per_micro=64))
    assert chances()[right] > 0.9


def test_micro_batches_give_the_gradient_of_the_whole(tiny):
    samples = [sample("ppaaaoobb"), sample("ppa", advantage=-0.5, seed=1)]
    whole, cut = (LocalTrainer(tiny(torch_dtype), learning_rate=1e-2) for torch_dtype in (16, 16))
    first = whole.update((Batch(micro=(tuple(samples),)),)).metrics
    second = cut.update((Batch(micro=((samples[0],), (samples[1],))),)).metrics
    assert second["loss"] == pytest.approx(first["loss"], abs=1e-6)
    assert second["grad_norm"] == pytest.approx(first["grad_norm"], rel=1e-4)
    assert second["entropy"] == pytest.approx(first["entropy"], rel=1e-5)


def test_what_a_report_says(tiny):
    spanned = replace(sample("ppaaaoobb"), spans=(Span(name="decision", start=4, end=5),))
    replayed = sample("ppaa", objective="imitation", weight=0.1)
    trainer = LocalTrainer(tiny(), policy_version=4, learning_rate=1e-3, warmup=2)
    report = trainer.update((Batch(micro=((spanned,), (replayed,))),))
    assert report.policy_version == 5
    assert report.optimizer_step == 1
    metrics = report.metrics
    assert set(metrics) == {
        "loss",
        "grad_norm",
        "learning_rate",
        "entropy",
        "entropy/decision",
        "imitation/nll",
        "clip_ratio/low_mean",
        "clip_ratio/high_mean",
        "clip_ratio/region_mean",
        "sampling/logp_difference/mean",
        "sampling/logp_difference/max",
        "samples",
        "tokens",
        "tokens/trained",
    }
    assert metrics["learning_rate"] == 5e-4
    assert (metrics["samples"], metrics["tokens"], metrics["tokens/trained"]) == (2, 13, 7)


def test_the_difference_between_rollout_and_trainer_is_reported(tiny):
    model = tiny()
    plain = sample("ppaaa")
    scores = token_logprobs(model, torch.from_numpy(plain.token_ids)[None])
    exact = np.where(plain.loss_mask, scores.logprobs.detach().numpy()[0], 0).astype(np.float32)
    off = exact.copy()
    off[3] += 0.3
    same = LocalTrainer(tiny(), learning_rate=1e-3).update(
        one_step(replace(plain, rollout_logprobs=exact))
    )
    other = LocalTrainer(tiny(), learning_rate=1e-3).update(
        one_step(replace(plain, rollout_logprobs=off))
    )
    assert same.metrics["sampling/logp_difference/max"] < 1e-5
    assert other.metrics["sampling/logp_difference/max"] == pytest.approx(0.3, rel=1e-3)
    assert other.metrics["sampling/logp_difference/mean"] == pytest.approx(0.1, rel=1e-3)


def clipped(report):
    return report.metrics["clip_ratio/region_mean"] > 0


def test_old_logprobs_are_the_rollouts_unless_on_policy(tiny):
    far = replace(sample("ppaa"), rollout_logprobs=np.full(4, -9.0, np.float32), policy_version=0)
    near = replace(far, advantages=far.advantages * 0.5)

    def report(*batches, version=0):
        return LocalTrainer(tiny(), policy_version=version, learning_rate=1e-3).update(batches)

    assert not clipped(report(*one_step(far)))
    assert clipped(report(*one_step(far), *one_step(near)))
    assert clipped(report(*one_step(far), version=1))
    recomputed = LocalTrainer(
        tiny(), policy_version=1, learning_rate=1e-3, recompute_old_logprobs=True
    )
    notes = recomputed.annotate((far,), recomputed.needs)
    assert not clipped(recomputed.update(one_step(far), notes))


def test_kl_is_measured_against_the_model_at_the_start(tiny):
    trainer = LocalTrainer(tiny(), MixedLoss(kl_coef=0.1), learning_rate=1e-2)
    samples = (sample("ppaaa"), sample("ppaaaa", seed=1))
    values = []
    for _ in range(5):
        notes = trainer.annotate(samples, trainer.needs)
        values.append(trainer.update(one_step(*samples[::-1]), notes).metrics["kl"])
    assert values[0] == pytest.approx(0, abs=1e-9)
    assert values[-1] > 1e-3
    with pytest.raises(ContractError, match="annotate the samples with ref_logprobs"):
        trainer.update(one_step(*samples))
    with pytest.raises(ContractError, match="one was not"):
        trainer.update(one_step(sample("ppaaa")), trainer.annotate(samples, trainer.needs))


def test_what_the_trainer_cannot_annotate_is_refused(tiny):
    trainer = LocalTrainer(tiny(), learning_rate=1e-3)
    with pytest.raises(ContractError, match="no value head"):
        trainer.annotate((), frozenset({"values"}))
    with pytest.raises(ContractError, match="need a reference model"):
        trainer.annotate((), frozenset({"ref_logprobs"}))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_is_fatal_and_changes_nothing(tiny, wrong):
    trainer = LocalTrainer(tiny(), learning_rate=1e-3)
    trainer.update(one_step(sample("ppaa")))
    before = bits(trainer)
    with pytest.raises(ContractError, match="optimiser step 2 has loss"):
        trainer.update(one_step(sample("ppaa", advantage=wrong)))
    assert bits(trainer) == before


def test_a_trained_first_token_is_refused(tiny):
    with pytest.raises(ContractError, match="prompt of at least one token"):
        LocalTrainer(tiny(), learning_rate=1e-3).update(one_step(sample("aa")))


def test_an_update_without_samples_counts_and_changes_nothing(tiny):
    trainer = LocalTrainer(tiny(), learning_rate=1e-3)
    before = bits(trainer)
    report = trainer.update(())
    assert (report.policy_version, report.optimizer_step) == (1, 0)
    assert bits(trainer) == before


def updates(trainer, first, last):
    for k in range(first, last):
        rows = [sample("ppaaoob", advantage=(-1.0) ** k, seed=k), sample("ppaae", seed=k + 50)]
        batches = pack(rows, max_tokens_per_micro=8)
        notes = trainer.annotate([s for b in batches for s in b.samples], trainer.needs)
        trainer.update(batches, notes)


@pytest.mark.parametrize("kl_coef", [0.0, 0.1])
def test_resume_equals_no_interruption_bit_for_bit(tiny, tmp_path, kl_coef):
    def make():
        loss = MixedLoss(kl_coef=kl_coef, entropy={"all": Ramp(start=0.2, steps=8)})
        return LocalTrainer(
            tiny(),
            loss,
            learning_rate=1e-2,
            warmup=4,
            schedule="cosine",
            schedule_steps=10,
            weight_decay=0.1,
        )

    whole = make()
    updates(whole, 0, 4)
    whole.save(tmp_path)
    updates(whole, 4, 8)
    resumed = make()
    resumed.load(tmp_path)
    assert (resumed.policy_version, resumed.optimizer_step) == (4, 4)
    updates(resumed, 4, 8)
    assert bits(resumed) == bits(whole)


def test_the_same_seed_gives_the_same_bits(tiny):
    trainers = [LocalTrainer(tiny(), learning_rate=1e-2) for _ in range(2)]
    for trainer in trainers:
        updates(trainer, 0, 5)
    assert bits(trainers[0]) == bits(trainers[1])


def test_a_saved_folder_is_an_ordinary_model(tiny, tmp_path):
    trainer = LocalTrainer(tiny(), learning_rate=1e-2)
    updates(trainer, 0, 2)
    trainer.save(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path).state_dict()
    for name, tensor in trainer.weights().items():
        assert torch.equal(loaded[name], tensor)
    assert not list(tmp_path.glob("*.bin")) + list(tmp_path.glob("*.pt"))


def test_saving_before_the_first_update_resumes_too(tiny, tmp_path):
    LocalTrainer(tiny(), learning_rate=1e-2).save(tmp_path)
    resumed, fresh = (LocalTrainer(tiny(), learning_rate=1e-2) for _ in range(2))
    resumed.load(tmp_path)
    for trainer in (resumed, fresh):
        updates(trainer, 0, 2)
    assert bits(resumed) == bits(fresh)


def test_folders_that_cannot_be_resumed_are_refused(tiny, tmp_path):
    trainer = LocalTrainer(tiny(), learning_rate=1e-2)
    with pytest.raises(DataError, match=r"holds trainer\.json"):
        trainer.load(tmp_path)
    trainer.save(tmp_path)
    with pytest.raises(DataError, match="without a reference model"):
        LocalTrainer(tiny(), MixedLoss(kl_coef=0.1), learning_rate=1e-2).load(tmp_path)
    (tmp_path / "trainer.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(DataError, match="trainer format 1 is read here"):
        trainer.load(tmp_path)


def test_weights_are_detached(tiny):
    weights = LocalTrainer(tiny(), learning_rate=1e-3).weights()
    assert not any(weight.requires_grad for weight in weights.values())
