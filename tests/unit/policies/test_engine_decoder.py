"""Small decoders in few operations: when it is used, and that weights are taken as they are."""

import pytest
import torch
from transformers import (
    Lfm2Config,
    Lfm2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from outfox.core.errors import ConfigError
from outfox.policies.engines.continuous.decoder import decoder
from outfox.policies.engines.continuous.forward import check_model

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


def lfm2(**settings) -> Lfm2ForCausalLM:
    """Two convolutions, then attention, then a convolution; all weights are drawn."""
    torch.manual_seed(0)
    kinds = ["conv", "conv", "full_attention", "conv"]
    sizes = SMALL | {"num_hidden_layers": 4, "layer_types": kinds, "conv_L_cache": 3}
    made = Lfm2ForCausalLM(Lfm2Config(**sizes | settings)).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(0.3 * torch.rand_like(weight))
    return made


@pytest.mark.parametrize(
    "settings", [{}, {"conv_L_cache": 1}, {"conv_L_cache": 6}, {"num_key_value_heads": 4}]
)
def test_lfm2_agrees_with_its_own_forward(settings):
    made = lfm2(**settings)
    assert decoder(made) is not None
    check_model(made)


def test_checking_says_nothing_of_kernels(capfd):
    check_model(lfm2())
    assert capfd.readouterr().err == ""


def test_lfm2_that_is_not_plain_is_refused():
    for made in (lfm2(conv_bias=True), lfm2().to(torch.float64)):
        assert decoder(made) is None
        with pytest.raises(ConfigError, match="LFM2 in float32"):
            check_model(made)


def test_plain_llamas_are_of_this_kind():
    assert decoder(model()) is not None
    assert decoder(model(tie_word_embeddings=True, head_dim=16)) is not None


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
    assert decoder(other) is None
    check_model(other)


def test_other_types_and_precisions_go_through_transformers():
    assert decoder(model().to(torch.bfloat16)) is None
    assert decoder(MistralForCausalLM(MistralConfig(**SMALL))) is None


@pytest.mark.parametrize("settings", [{}, {"head_dim": 16}, {"num_key_value_heads": 4}])
def test_it_agrees_with_the_models_own_forward(settings):
    made = model(**settings)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if "norm" in name:
                weight.add_(torch.rand_like(weight))
    check_model(made)
