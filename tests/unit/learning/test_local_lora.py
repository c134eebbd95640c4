"""The local trainer with an adapter: what moves, the reference, folders, resuming."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
import torch
from safetensors.torch import load_file

from outfox.core.errors import DataError
from outfox.core.recipe import LoraSettings
from outfox.core.results import Batch
from outfox.learning.batching.packing import pack
from outfox.learning.losses.mixed import MixedLoss
from outfox.learning.trainers import local
from outfox.learning.trainers.local import LocalTrainer
from outfox.policies.loading import LoadedModel
from outfox.policies.lora import with_lora
from outfox.testing.learning import sample


@pytest.fixture
def made(tiny):
    """A trainer of the tiny model; `rank` None: of the whole model."""

    def make(loss=None, rank=4, seed=0, **settings):
        lora = None if rank is None else LoraSettings(rank=rank)
        loaded = with_lora(LoadedModel(model=tiny(), tokenizer=None), lora, seed=seed)
        return LocalTrainer(loaded.model, loss, **{"learning_rate": 1e-2, **settings})

    return make


def bits(trainer):
    return {name: w.numpy().tobytes() for name, w in trainer.weights().items()}


def updates(trainer, first, last):
    for k in range(first, last):
        rows = [sample("ppaaoob", advantage=(-1.0) ** k, seed=k), sample("ppaae", seed=k + 50)]
        batches = pack(rows, max_tokens_per_micro=8)
        notes = trainer.annotate([s for b in batches for s in b.samples], trainer.needs)
        trainer.update(batches, notes)


def test_the_adapter_moves_and_nothing_else(made, tiny):
    trainer = made()
    before = bits(trainer)
    updates(trainer, 0, 3)
    moved = {name for name, own in bits(trainer).items() if own != before[name]}
    assert moved == {name for name in before if "lora_" in name}
    for name, weight in tiny().state_dict().items():
        plain = name.replace(".weight", ".base_layer.weight")
        assert torch.equal(trainer.weights().get(plain, trainer.weights().get(name)), weight)


def test_the_optimiser_holds_the_adapter_alone(made, tmp_path):
    trainer = made(max_grad_norm=0.5, weight_decay=0.1)
    updates(trainer, 0, 1)
    trainer.save(tmp_path)
    state = load_file(tmp_path / "optimizer.safetensors")
    assert {name.split(".")[-3] for name in state} == {"lora_A", "lora_B"}
    assert len(state) == 3 * 2 * 2 * 7


def test_muon_may_have_the_whole_adapter(made):
    trainer = made(muon_rate=0.02)
    before = bits(trainer)
    updates(trainer, 0, 1)
    assert bits(trainer) != before


def test_the_reference_is_the_policy_at_the_start_without_a_second_model(made, tmp_path):
    trained_before = made()
    updates(trained_before, 0, 3)
    trained_before.save(tmp_path / "cold")
    trainer = made(MixedLoss(kl_coef=0.1))
    samples = (sample("ppaaa"), sample("ppaaaa", seed=1))
    values = []
    for _ in range(4):
        notes = trainer.annotate(samples, trainer.needs)
        values.append(trainer.update((Batch(micro=(samples,)),), notes).metrics["kl"])
    assert values[0] == pytest.approx(0, abs=1e-9)
    assert values[-1] > 1e-4
    trainer.save(tmp_path / "run")
    assert len(load_file(tmp_path / "run" / "reference.safetensors")) == 2 * 2 * 7


@pytest.mark.parametrize("kl_coef", [0.0, 0.1])
def test_resume_equals_no_interruption_bit_for_bit(made, tmp_path, kl_coef):
    whole = made(MixedLoss(kl_coef=kl_coef))
    updates(whole, 0, 3)
    whole.save(tmp_path)
    updates(whole, 3, 6)
    resumed = made(MixedLoss(kl_coef=kl_coef), seed=9)
    resumed.load(tmp_path)
    updates(resumed, 3, 6)
    assert bits(resumed) == bits(whole)
    names = {file.name for file in tmp_path.iterdir()}
    assert {"adapter_config.json", "adapter_model.safetensors"} <= names
    assert "model.safetensors" not in names


def test_an_adapter_and_a_whole_model_are_not_resumed_as_each_other(made, tmp_path):
    made().save(tmp_path / "adapter")
    made(rank=None).save(tmp_path / "whole")
    with pytest.raises(DataError, match=r"saved with model\.lora: resume with the settings"):
        made(rank=None).load(tmp_path / "adapter")
    with pytest.raises(DataError, match=r"saved without model\.lora: resume"):
        made().load(tmp_path / "whole")
    with pytest.raises(DataError, match="holds another adapter"):
        made(rank=2).load(tmp_path / "adapter")


def test_an_adapter_beside_another_base_is_refused(made, tmp_path):
    made().save(tmp_path)
    other = made()
    with torch.no_grad():
        other.weights()["model.embed_tokens.weight"][3, 3] += 1
    with pytest.raises(DataError, match=r"beside other weights.*give the model\.path"):
        other.load(tmp_path)
    assert json.loads((tmp_path / "trainer.json").read_text())["base"] > 0


@dataclass
class Twins:
    """Two ranks that did the same."""

    index: int = 0
    count: int = 2

    def gather(self, mine):
        return [mine, mine]


def test_between_ranks_only_the_gradients_of_the_adapter_travel(made, monkeypatch):
    sent = []

    def doubled(gradients, count):
        sent.extend(gradient.shape for gradient in gradients)
        for gradient in gradients:
            gradient *= count

    monkeypatch.setattr(local, "sum_over_ranks", doubled)
    trainer = made(ranks=Twins())
    updates(trainer, 0, 1)
    own = [w.shape for name, w in trainer.weights().items() if "lora_" in name]
    assert sorted(sent) == sorted(own)


@pytest.mark.parametrize("rank", [None, 4])
def test_gradient_checkpointing_changes_no_bit(made, rank):
    plain, again = (made(rank=rank, gradient_checkpointing=own) for own in (False, True))
    for trainer in (plain, again):
        updates(trainer, 0, 3)
    assert bits(plain) == bits(again)


def test_the_loop_packs_by_the_trainers_micro_batches(made):
    assert made().micro_tokens == 4096
    assert made(micro_tokens=64).micro_tokens == 64
