"""The Llama decoder in few operations: when it is used, and that weights are taken as they are."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from outfox.policies.engines.continuous.forward import check_model
from outfox.policies.engines.continuous.llama import llama

SMALL = {
    "vocab_size": 70,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
}


def model(**settings) -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SMALL | settings)).eval()


def test_plain_llamas_are_of_this_kind():
    assert llama(model()) is not None
    assert llama(model(tie_word_embeddings=True, head_dim=16)) is not None


@pytest.mark.parametrize(
    "settings",
    [
        {"attention_bias": True},
        {"mlp_bias": True},
        {"hidden_act": "gelu"},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}},
    ],
)
def test_other_llamas_go_through_transformers(settings):
    other = model(**settings)
    assert llama(other) is None
    check_model(other)


def test_other_types_and_precisions_go_through_transformers():
    assert llama(model().to(torch.bfloat16)) is None
    assert llama(MistralForCausalLM(MistralConfig(**SMALL))) is None


@pytest.mark.parametrize("settings", [{}, {"head_dim": 16}, {"num_key_value_heads": 4}])
def test_it_agrees_with_the_models_own_forward(settings):
    made = model(**settings)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if "norm" in name:
                weight.add_(torch.rand_like(weight))
    check_model(made)
