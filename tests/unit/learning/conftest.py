"""A language model of a few hundred weights."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM


@pytest.fixture
def tiny():
    """Makes the same model anew at every call; `vocabulary` 16 unless told."""

    def make(vocabulary=16, dtype=torch.float32):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return LlamaForCausalLM(
                LlamaConfig(
                    vocab_size=vocabulary,
                    hidden_size=16,
                    intermediate_size=32,
                    num_hidden_layers=2,
                    num_attention_heads=2,
                    num_key_value_heads=1,
                    max_position_embeddings=64,
                    tie_word_embeddings=True,
                    bos_token_id=None,
                    eos_token_id=0,
                    pad_token_id=0,
                )
            ).to(dtype)

    return make
