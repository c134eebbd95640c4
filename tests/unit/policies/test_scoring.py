"""The own path of known decoders against the general one: values, gradients, when it is taken."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Lfm2Config, Lfm2ForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.models.lfm2.modeling_lfm2 import Lfm2RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from outfox.core.errors import ConfigError
from outfox.policies import logprobs
from outfox.policies.logprobs import FlatScores, sequence_logprobs
from outfox.policies.scoring import head, layout
from outfox.policies.scoring.decoder import is_known
from outfox.policies.scoring.tree import by_length, prefix_tree

SIZES = {
    "vocab_size": 24,
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "initializer_range": 0.4,
    "pad_token_id": 0,
    "tie_word_embeddings": True,
}


def made(model):
    """Every weight has a part in it, those of the norms too."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    return model.double().eval()


def llama(key_values=4, **more):
    torch.manual_seed(0)
    sizes = {**SIZES, "num_hidden_layers": 3, "num_key_value_heads": key_values, **more}
    return made(LlamaForCausalLM(LlamaConfig(**sizes)))


def lfm2(layers=("conv", "full_attention", "conv"), length=3, key_values=2):
    torch.manual_seed(0)
    config = Lfm2Config(
        **SIZES,
        num_hidden_layers=len(layers),
        num_key_value_heads=key_values,
        layer_types=list(layers),
        conv_L_cache=length,
        block_auto_adjust_ff_dim=False,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )
    return made(Lfm2ForCausalLM(config))


MODELS = {
    "llama": llama,
    "llama-shared-keys": lambda: llama(key_values=1),
    "llama-wide-heads": lambda: llama(key_values=2, head_dim=6),
    "llama-untied": lambda: llama(tie_word_embeddings=False),
    "lfm2": lfm2,
    "lfm2-attention-last": lambda: lfm2(("conv", "conv", "full_attention"), length=4, key_values=4),
    "lfm2-all-short": lambda: lfm2(("conv", "full_attention"), length=1),
}


@pytest.fixture(autouse=True)
def _norms_in_double(monkeypatch):
    """transformers norms in single precision whatever the model's; here that would hide errors."""

    def forward(self, x):
        return self.weight * x * (x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon).rsqrt()

    for norm in (LlamaRMSNorm, Lfm2RMSNorm):
        monkeypatch.setattr(norm, "forward", forward)


def sequences(seed=0, count=9):
    """Siblings that part at different places, one that begins another, equal ones, a stranger."""
    draw = np.random.default_rng(seed)
    stem = draw.integers(0, 24, 30)
    found = []
    for k in range(count):
        common = draw.integers(0, 20)
        found.append(np.concatenate([stem[:common], draw.integers(0, 24, 2 + k)]))
    found += [found[0], stem[:7], stem, np.array([5, 5])]
    masks = [draw.random(len(ids)) < 0.4 for ids in found]
    for mask in masks:
        mask[0] = False
    masks[3][:] = False
    masks[-1][1] = True
    return found, masks


def both(model, ids, masks, monkeypatch, temperature=1.0):
    """Scores and gradients by the own and by the general path."""
    results = []
    for known in (is_known, lambda model: False):
        monkeypatch.setattr(logprobs, "is_known", known)
        model.zero_grad()
        scores = sequence_logprobs(model, ids, masks, temperature=temperature)
        weights = torch.linspace(-1, 2, len(scores.logprobs), dtype=torch.float64)
        loss = (weights * scores.logprobs).sum() - (0.3 * weights.flip(0) * scores.entropies).sum()
        loss.backward()
        gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
        results.append((scores, gradients))
    return results


def same(one: FlatScores, other: FlatScores):
    torch.testing.assert_close(one.logprobs, other.logprobs, atol=1e-11, rtol=1e-11)
    torch.testing.assert_close(one.entropies, other.entropies, atol=1e-11, rtol=1e-11)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_values_and_gradients_are_those_of_the_general_path(name, temperature, monkeypatch):
    model = MODELS[name]()
    assert is_known(model)
    ids, masks = sequences()
    (own, own_grads), (general, grads) = both(model, ids, masks, monkeypatch, temperature)
    assert len(own.logprobs) == sum(mask.sum() for mask in masks)
    same(own, general)
    for key, gradient in grads.items():
        torch.testing.assert_close(own_grads[key], gradient, atol=1e-10, rtol=1e-10, msg=key)


@pytest.mark.parametrize("name", ["llama", "lfm2"])
def test_the_gradient_of_each_token_alone_is_that_of_the_general_path(name, monkeypatch):
    model = MODELS[name]()
    ids, masks = sequences(count=2)
    embedding = model.get_input_embeddings().weight
    jacobians = []
    for known in (is_known, lambda model: False):
        monkeypatch.setattr(logprobs, "is_known", known)
        found = sequence_logprobs(model, ids, masks).logprobs
        rows = [torch.autograd.grad(one, embedding, retain_graph=True)[0] for one in found]
        jacobians.append(torch.stack(rows))
    torch.testing.assert_close(*jacobians, atol=1e-10, rtol=1e-10)


def test_logits_that_are_computed_again_change_nothing(monkeypatch):
    model = llama()
    ids, masks = sequences()
    kept, _ = both(model, ids, masks, monkeypatch)
    monkeypatch.setattr(head, "KEPT_LOGITS", 0)
    monkeypatch.setattr(head, "_ROWS", 5)
    again, _ = both(model, ids, masks, monkeypatch)
    same(kept[0], again[0])
    for key, gradient in kept[1].items():
        torch.testing.assert_close(again[1][key], gradient, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("name", ["llama-shared-keys", "lfm2-attention-last"])
@pytest.mark.parametrize("block", [1, 4, 7, 64])
def test_attention_in_blocks_changes_nothing(name, block, monkeypatch):
    model = MODELS[name]()
    ids, masks = sequences()
    kept, _ = both(model, ids, masks, monkeypatch)
    monkeypatch.setattr(layout, "KEPT_ATTENTION", 0)
    monkeypatch.setattr(layout, "BLOCK", block)
    again, _ = both(model, ids, masks, monkeypatch)
    same(kept[0], again[0])
    for key, gradient in kept[1].items():
        torch.testing.assert_close(again[1][key], gradient, atol=1e-11, rtol=1e-11)


@pytest.mark.parametrize("name", ["llama", "lfm2", "general"])
def test_gradient_checkpointing_changes_no_bit(name, monkeypatch):
    model = MODELS["llama" if name == "general" else name]().float()
    if name == "general":
        monkeypatch.setattr(logprobs, "is_known", lambda model: False)
    ids, masks = sequences()
    found = []
    for again in (False, True):
        model.zero_grad()
        scores = sequence_logprobs(model, ids, masks, gradient_checkpointing=again)
        (scores.logprobs.sum() + scores.entropies.sum()).backward()
        gradients = [p.grad.numpy().tobytes() for p in model.parameters()]
        found.append((scores.logprobs.detach().numpy().tobytes(), gradients))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["llama", "lfm2", "general"])
def test_gradient_checkpointing_keeps_less_for_the_backward_pass(name, monkeypatch):
    model = MODELS["llama" if name == "general" else name]()
    if name == "general":
        monkeypatch.setattr(logprobs, "is_known", lambda model: False)
    ids, masks = sequences()
    kept = []
    for again in (False, True):
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, sizes=sizes: sizes.append(t.numel()) or t, lambda t: t
        ):
            sequence_logprobs(model, ids, masks, gradient_checkpointing=again)
        kept.append(sum(sizes))
    assert kept[1] < kept[0] / 2


def test_a_model_without_layers_to_compute_again_is_refused(monkeypatch):
    monkeypatch.setattr(logprobs, "is_known", lambda model: False)
    monkeypatch.setattr(logprobs, "GradientCheckpointingLayer", torch.nn.Conv2d)
    with pytest.raises(ConfigError, match="gradient_checkpointing needs layers"):
        sequence_logprobs(llama(), *sequences(), gradient_checkpointing=True)


@pytest.mark.parametrize("name", ["llama", "lfm2"])
def test_a_repetition_gives_the_same_bits(name):
    model = MODELS[name]().float()
    ids, masks = sequences()
    found = []
    for _ in range(2):
        model.zero_grad()
        scores = sequence_logprobs(model, ids, masks)
        scores.logprobs.sum().backward()
        gradients = [p.grad.numpy().tobytes() for p in model.parameters()]
        found.append((scores.logprobs.detach().numpy().tobytes(), gradients))
    assert found[0] == found[1]


def test_nothing_wanted_is_nothing_scored():
    scores = sequence_logprobs(llama(), [np.array([1, 2])], [np.zeros(2, np.bool_)])
    assert len(scores.logprobs) == len(scores.entropies) == 0


def test_only_a_model_with_nothing_added_takes_the_own_path():
    model = llama()
    hook = model.model.norm.register_forward_hook(lambda *_: None)
    assert not is_known(model)
    hook.remove()
    assert is_known(model)
    assert not is_known(llama(attention_bias=True))
    assert not is_known(llama(hidden_act="gelu"))
    assert not is_known(llama(dtype="bfloat16").bfloat16())
    torch.nn.utils.parametrizations.weight_norm(model.model.layers[0].mlp.up_proj)
    assert not is_known(model)


# -- the tree -------------------------------------------------------------------------------------
def test_a_shared_beginning_is_one_run_of_nodes():
    tree = prefix_tree([np.array([7, 8, 9, 1]), np.array([7, 8, 5]), np.array([7, 8, 9, 1])])
    assert len(tree.token_ids) == 5
    assert sorted(tree.shared) == [0, 2, 4]
    assert tree.depths.tolist()[:2] == [0, 1]
    for ids, path in zip([[7, 8, 9, 1], [7, 8, 5], [7, 8, 9, 1]], tree.paths, strict=True):
        assert tree.token_ids[path].tolist() == ids


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.integers(0, 2), max_size=6), min_size=1, max_size=8))
def test_nodes_are_the_distinct_prefixes(rows):
    tree = prefix_tree([np.array(row, np.int64) for row in rows])
    prefixes = {tuple(row[: k + 1]) for row in rows for k in range(len(row))}
    assert len(tree.token_ids) == len(prefixes)
    missing = len(prefixes)
    first, second = tree.ancestors(2)
    for row, path in zip(rows, tree.paths, strict=True):
        assert tree.token_ids[path].tolist() == row
        assert tree.depths[path].tolist() == list(range(len(row)))
        assert first[path].tolist() == [missing, *path.tolist()][: len(row)]
        assert second[path].tolist() == [missing, missing, *path.tolist()][: len(row)]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 60), max_size=30))
def test_groups_of_nearly_equal_length_hold_every_sequence_once(lengths):
    groups = by_length(lengths, 0.1)
    assert sorted(k for group in groups for k in group) == [k for k, n in enumerate(lengths) if n]
    for group in groups:
        full = len(group) * max(lengths[k] for k in group)
        assert sum(lengths[k] for k in group) >= 0.9 * full - 1e-9
