"""Adapters: where they are, that every path sees them, folders, refusals."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch
from peft import PeftModel
from transformers import (
    AutoModelForCausalLM,
    Lfm2Config,
    Lfm2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from outfox.core.errors import ConfigError, DataError
from outfox.core.protocols import Sampling
from outfox.core.recipe import LoraSettings
from outfox.policies import logprobs
from outfox.policies.engines.continuous.decoder import decoder
from outfox.policies.engines.transformers import TransformersEngine
from outfox.policies.loading import LoadedModel, load
from outfox.policies.logprobs import sequence_logprobs, token_logprobs
from outfox.policies.lora import (
    CONFIG,
    base_sum,
    is_adapted,
    load_adapter,
    merged,
    save_adapter,
    with_lora,
)
from outfox.policies.scoring.decoder import is_known
from outfox.policies.tiny import build_tokenizer

TOKENIZER = build_tokenizer(["Paris", "Rome"])
SIZES = {
    "vocab_size": len(TOKENIZER),
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": 1,
    "pad_token_id": 0,
}


def llama():
    return LlamaForCausalLM(LlamaConfig(**SIZES))


def lfm2():
    kinds = {"layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False}
    rotary = {"rope_type": "default", "rope_theta": 10000.0}
    return Lfm2ForCausalLM(Lfm2Config(**SIZES, **kinds, rope_parameters=rotary))


def qwen():
    """A model of the general paths."""
    return Qwen2ForCausalLM(Qwen2Config(**SIZES))


MODELS = {"llama": llama, "lfm2": lfm2, "qwen2": qwen}


def made(name="llama"):
    torch.manual_seed(0)
    return MODELS[name]().eval()


def adapted(model, *, trained=True, seed=0, **settings):
    """With an adapter; `trained`: as if it had been moved."""
    with_lora(LoadedModel(model=model, tokenizer=TOKENIZER), LoraSettings(**settings), seed=seed)
    if trained:
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for weight in model.parameters():
                if weight.requires_grad:
                    weight.add_(0.2 * torch.randn(weight.shape, generator=generator))
    return model


def sequences():
    draw = np.random.default_rng(0)
    ids = [draw.integers(2, len(TOKENIZER), size) for size in (7, 12, 9)]
    masks = [np.arange(len(own)) > 2 for own in ids]
    return ids, masks


def scored(model):
    found = sequence_logprobs(model, *sequences())
    return found.logprobs, found.entropies


# -- what an adapter does -------------------------------------------------------------------------
@pytest.mark.parametrize("name", MODELS)
def test_at_the_start_the_policy_is_the_base_bit_for_bit(name):
    plain, own = made(name), adapted(made(name), trained=False)
    with torch.no_grad():
        for one, other in zip(scored(plain), scored(own), strict=True):
            assert torch.equal(one, other)
        ids = torch.from_numpy(sequences()[0][1])[None]
        general = [token_logprobs(model, ids).logprobs for model in (plain, own)]
    assert torch.equal(*general)
    assert is_known(plain) == is_known(own) == (name != "qwen2")


@pytest.mark.parametrize("name", ["llama", "lfm2"])
def test_the_own_path_gives_what_the_layers_of_peft_give(name, monkeypatch):
    model = adapted(made(name), rank=3)
    found = []
    for known in (is_known, lambda model: False):
        monkeypatch.setattr(logprobs, "is_known", known)
        model.zero_grad()
        logp, entropies = scored(model)
        (logp.sum() - 0.3 * entropies.sum()).backward()
        gradients = [p.grad.clone() for p in model.parameters() if p.requires_grad]
        found.append([logp.detach(), entropies.detach(), *gradients])
    assert len(found[0]) > 10
    for own, general in zip(*found, strict=True):
        torch.testing.assert_close(own, general, atol=1e-3, rtol=1e-3)
    assert all(p.grad is None for p in model.parameters() if not p.requires_grad)


@pytest.mark.parametrize("name", MODELS)
async def test_what_is_sampled_is_what_is_trained(name):
    model = adapted(made(name))
    engine = TransformersEngine(model, TOKENIZER)
    assert (decoder(model) is None) == (name == "qwen2")
    prompt = np.array([5, 6, 7])
    engine.open("a", noise_key=3)
    made_by = await engine.generate("a", prompt, sampling=Sampling(max_tokens=12))
    whole = np.concatenate([prompt, made_by.token_ids])
    mask = np.arange(len(whole)) >= 3
    with torch.no_grad():
        trained = sequence_logprobs(model, [whole], [mask]).logprobs.numpy()
        with_none = sequence_logprobs(made(name), [whole], [mask]).logprobs.numpy()
    np.testing.assert_allclose(made_by.logprobs, trained, atol=1e-4)
    assert np.abs(made_by.logprobs - with_none).max() > 1e-2


def test_only_the_adapter_is_trained_and_its_draw_follows_the_seed():
    own, again, other = (adapted(made(), trained=False, seed=seed) for seed in (1, 1, 2))
    assert {name.rpartition(".default")[0].rpartition(".")[2] for name in trained(own)} == {
        "lora_A",
        "lora_B",
    }
    assert len(trained(own)) == 2 * 2 * 7
    for name, weight in trained(own).items():
        assert torch.equal(weight, trained(again)[name])
        assert torch.equal(weight, trained(other)[name]) == ("lora_B" in name)


def trained(model):
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def test_targets_are_those_that_are_named():
    names = trained(adapted(made(), targets=("q_proj", "v_proj"), rank=2, alpha=4.0))
    assert {name.split(".")[4] for name in names} == {"q_proj", "v_proj"}
    assert {weight.shape[0] for name, weight in names.items() if "lora_A" in name} == {2}


# -- folders --------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks for it
def test_an_adapter_folder_loads_with_peft(tmp_path):
    model = adapted(made(), rank=3, alpha=5.0)
    save_adapter(model, tmp_path)
    theirs = PeftModel.from_pretrained(made(), str(tmp_path))
    ids = torch.from_numpy(sequences()[0][1])[None]
    with torch.no_grad():
        assert torch.equal(theirs(ids).logits, model(ids).logits)
    config = json.loads((tmp_path / CONFIG).read_text())
    assert (config["r"], config["lora_alpha"], config["lora_dropout"]) == (3, 5.0, 0.0)
    assert config["target_modules"] == sorted(config["target_modules"])


def test_an_adapter_comes_back_bit_for_bit(tmp_path):
    model, fresh = adapted(made()), adapted(made(), trained=False, seed=9)
    save_adapter(model, tmp_path)
    load_adapter(fresh, tmp_path)
    for name, weight in trained(model).items():
        assert torch.equal(weight, trained(fresh)[name])


def test_another_adapter_is_refused(tmp_path):
    save_adapter(adapted(made()), tmp_path)
    with pytest.raises(DataError, match=r"holds another adapter.*has shape"):
        load_adapter(adapted(made(), rank=4), tmp_path)
    with pytest.raises(DataError, match=r"and None here; resume with the settings of the run"):
        load_adapter(adapted(made(), targets=("q_proj",)), tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_merged_it_is_an_ordinary_model_of_the_same_function(name, tmp_path):
    model = adapted(made(name))
    ids = torch.from_numpy(sequences()[0][1])[None]
    with torch.no_grad():
        before = model(ids).logits
        with merged(model) as whole:
            assert not is_adapted(whole)
            whole.save_pretrained(tmp_path)
        assert torch.equal(model(ids).logits, before)
    assert is_adapted(model)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        torch.testing.assert_close(loaded(ids).logits, before, atol=1e-4, rtol=1e-4)


def test_the_sum_of_the_base_knows_nothing_of_the_adapter():
    model = made()
    with_none = base_sum(adapted(made(), trained=False))
    assert base_sum(adapted(model, seed=5)) == with_none
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.base_layer.weight[0, 0] += 1e-3
    assert base_sum(model) != with_none


# -- refusals -------------------------------------------------------------------------------------
def test_unknown_targets_are_refused_with_those_there_are():
    with pytest.raises(ConfigError, match=r"called 'query_proj'.*It has down_proj, gate_proj, k_"):
        adapted(made(), targets=("q_proj", "query_proj"))
    with pytest.raises(ConfigError, match="called 'lm_head'"):
        adapted(made(), targets=("lm_head",))


def test_a_second_adapter_is_refused():
    with pytest.raises(ConfigError, match="has one already"):
        adapted(adapted(made()))


def test_without_peft_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ConfigError, match=r"needs 'peft'; pip install 'outfox\[peft\]'"):
        adapted(made())


def test_an_adapter_folder_is_no_model_folder(tmp_path):
    save_adapter(adapted(made()), tmp_path)
    with pytest.raises(ConfigError, match=r"holds an adapter\. Name the folder `model` of"):
        load(tmp_path)
