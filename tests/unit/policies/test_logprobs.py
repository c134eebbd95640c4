"""Log-probabilities of given tokens, aligned with the tokens."""

import pytest
import torch
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PhiConfig,
    PhiForCausalLM,
)

from outfox.core.errors import ConfigError
from outfox.policies.logprobs import token_logprobs
from outfox.policies.scoring import head
from outfox.policies.tiny import build_model, build_tokenizer

TOKENIZER = build_tokenizer(["Paris"])
MODEL = build_model(TOKENIZER, hidden=32, heads=2, layers=2, initializer_range=0.2)
IDS = torch.randint(0, len(TOKENIZER), (3, 9), generator=torch.Generator().manual_seed(0))
LENGTHS = torch.tensor([9, 4, 1])


def naive(row: int, length: int, temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Token by token, one row alone."""
    logprobs, entropies = [torch.zeros(())], [torch.zeros(())]
    for end in range(1, length):
        logits = MODEL(IDS[row : row + 1, :end]).logits[0, -1] / temperature
        logp = logits.log_softmax(-1)
        logprobs.append(logp[IDS[row, end]])
        entropies.append(-(logp.exp() * logp).sum())
    return torch.stack(logprobs), torch.stack(entropies)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_every_token_gets_its_own_logprob_and_padding_none(temperature: float):
    scores = token_logprobs(MODEL, IDS, LENGTHS, temperature=temperature)
    assert scores.logprobs.shape == scores.entropies.shape == IDS.shape
    for row, length in enumerate(LENGTHS.tolist()):
        logprobs, entropies = naive(row, length, temperature)
        torch.testing.assert_close(scores.logprobs[row, :length], logprobs, atol=1e-5, rtol=0)
        torch.testing.assert_close(scores.entropies[row, :length], entropies, atol=1e-5, rtol=0)
        assert not scores.logprobs[row, length:].any()
        assert not scores.entropies[row, length:].any()


def test_what_lies_in_the_padding_is_without_influence():
    other = IDS.clone()
    other[1, 4:] = 7
    pair = [token_logprobs(MODEL, ids, LENGTHS).logprobs for ids in (IDS, other)]
    assert torch.equal(pair[0], pair[1])


def test_only_wanted_tokens_are_scored():
    where = torch.zeros_like(IDS, dtype=torch.bool)
    where[0, 3:5] = where[1, 8] = where[2, 0] = True
    scores = token_logprobs(MODEL, IDS, LENGTHS, where=where).logprobs
    full = token_logprobs(MODEL, IDS).logprobs
    torch.testing.assert_close(scores[0, 3:5], full[0, 3:5], atol=1e-6, rtol=0)
    assert scores.count_nonzero() == 2
    assert not token_logprobs(MODEL, IDS, where=where & False).logprobs.any()


def test_parts_change_neither_values_nor_gradients(monkeypatch):
    def run() -> tuple[torch.Tensor, torch.Tensor]:
        MODEL.zero_grad()
        scores = token_logprobs(MODEL, IDS, LENGTHS)
        (scores.logprobs.sum() + 0.3 * scores.entropies.sum()).backward()
        return scores.logprobs.detach(), MODEL.lm_head.weight.grad.clone()

    kept = run()
    monkeypatch.setattr(head, "KEPT_LOGITS", 0)
    monkeypatch.setattr(head, "_ROWS", 2)
    for whole, parts in zip(kept, run(), strict=True):
        torch.testing.assert_close(whole, parts, atol=1e-5, rtol=1e-5)


def test_no_gradient_flows_from_tokens_that_are_not_wanted():
    where = torch.zeros_like(IDS, dtype=torch.bool)
    where[0, 2] = True
    embedded = MODEL.get_input_embeddings()(IDS).detach().requires_grad_()
    hook = MODEL.get_input_embeddings().register_forward_hook(lambda *_: embedded)
    try:
        token_logprobs(MODEL, IDS, LENGTHS, where=where).logprobs.sum().backward()
    finally:
        hook.remove()
    assert embedded.grad is not None
    assert embedded.grad[0, :2].abs().min() > 0
    assert not embedded.grad[0, 2:].any()
    assert not embedded.grad[1:].any()


SIZES = {
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@pytest.mark.parametrize(
    ("model", "config", "named"),
    [
        (Gemma2ForCausalLM, Gemma2Config(**SIZES, head_dim=8), "final_logit_softcapping"),
        (GraniteForCausalLM, GraniteConfig(**SIZES, logits_scaling=2.0), "logits_scaling"),
        (CohereForCausalLM, CohereConfig(**SIZES, logit_scale=0.1), "logit_scale"),
    ],
)
def test_a_model_that_bends_its_logits_is_refused(model, config, named):
    torch.manual_seed(0)
    with pytest.raises(ConfigError, match=rf"does more \({named}\)"):
        token_logprobs(model(config), IDS % 32)


def test_what_happens_to_logits_is_seen_where_no_setting_tells():
    class Bent(LlamaForCausalLM):
        def forward(self, **given):
            made = super().forward(**given)
            made.logits = made.logits * 1.01
            return made

    torch.manual_seed(0)
    with pytest.raises(ConfigError, match="the head; Bent does more"):
        token_logprobs(Bent(LlamaConfig(**SIZES)), IDS % 32)


def test_a_head_that_is_no_plain_linear_map_is_refused():
    model = LlamaForCausalLM(LlamaConfig(**SIZES))
    model.lm_head = torch.nn.Sequential(model.lm_head)
    with pytest.raises(ConfigError, match="is a Sequential"):
        token_logprobs(model, IDS % 32)


def test_the_bias_of_a_head_counts():
    torch.manual_seed(0)
    model = PhiForCausalLM(PhiConfig(**SIZES)).eval()
    with torch.no_grad():
        model.lm_head.bias.normal_()
    ids = IDS % 32
    found = token_logprobs(model, ids, temperature=0.8)
    logp = (model(ids).logits / 0.8).log_softmax(-1)[:, :-1]
    expected = logp.gather(-1, ids[:, 1:, None])[..., 0]
    torch.testing.assert_close(found.logprobs[:, 1:], expected, atol=1e-5, rtol=1e-5)
    found.logprobs.sum().backward()
    own, model.lm_head.bias.grad = model.lm_head.bias.grad, None
    expected.sum().backward()
    torch.testing.assert_close(own, model.lm_head.bias.grad, atol=1e-4, rtol=1e-4)
