"""Sequences that are scored together are scored as if each were alone, in the order given."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from outfox.policies import logprobs as scoring

SIZES = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "vocab_size": 12}
HEADS = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 32}
torch.manual_seed(0)
MODEL = LlamaForCausalLM(
    LlamaConfig(**SIZES, **HEADS, initializer_range=0.5, tie_word_embeddings=True)
)
MODEL.double().eval()


@st.composite
def rows(draw):
    """Few tokens, so that beginnings are shared; some rows are repeated."""
    ids = draw(st.lists(st.integers(0, 3), min_size=1, max_size=10))
    wanted = draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids)))
    return np.asarray(ids, np.int64), np.asarray([False, *wanted[1:]])


ROWS = st.lists(rows(), min_size=1, max_size=6)


def scored(batch) -> list[np.ndarray]:
    with torch.no_grad():
        flat = scoring.sequence_logprobs(MODEL, *map(list, zip(*batch, strict=True)))
    return np.split(flat.logprobs.numpy(), np.cumsum([int(mask.sum()) for _, mask in batch])[:-1])


@pytest.mark.parametrize("known", [True, False], ids=["own path", "general path"])
@given(batch=ROWS, shuffler=st.randoms())
def test_no_sequence_sees_another_and_the_order_is_kept(known: bool, batch, shuffler):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scoring, "is_known", lambda model: known)
        together = scored(batch)
        order = list(range(len(batch)))
        shuffler.shuffle(order)
        shuffled = scored([batch[k] for k in order])
        for k, row in enumerate(batch):
            np.testing.assert_allclose(together[k], scored([row])[0], atol=1e-12)
            np.testing.assert_allclose(together[k], shuffled[order.index(k)], atol=1e-12)
        assert all(map(np.array_equal, together, scored(batch)))
