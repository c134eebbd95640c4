"""Log-probabilities by parts equal those of all logits at once: values, gradients, any cut."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from outfox.policies.scoring import head as scoring


def plain(states, head, ends, targets, temperature):
    """What it stands for: every logit at once, and autograd."""
    logp = (head(states).to(torch.float64) / temperature).log_softmax(-1)
    entropies = -(logp.exp() * logp).sum(-1)
    return logp[ends].gather(-1, targets[:, None])[:, 0], entropies[ends]


def made(seed, states, hidden, vocabulary, tokens, bias, dtype=torch.float64):
    draw = torch.Generator().manual_seed(seed)
    head = nn.Linear(hidden, vocabulary, bias=bias, dtype=dtype)
    with torch.no_grad():
        for weight in head.parameters():
            weight.copy_(torch.randn(weight.shape, generator=draw))
    given = torch.randn(states, hidden, generator=draw, dtype=torch.float64).to(dtype)
    ends = torch.randint(states, (tokens,), generator=draw)
    targets = torch.randint(vocabulary, (tokens,), generator=draw)
    return given.requires_grad_(), head, ends, targets


def gradients(score, states, head, ends, targets, temperature, weights):
    """Of a weighted sum of log-probabilities and entropies; None is not summed."""
    logprobs, entropies = score(states, head, ends, targets, temperature)
    pairs = zip((logprobs, entropies), weights, strict=True)
    total = sum((given * found).sum() for found, given in pairs if given is not None)
    found = torch.autograd.grad(total, [states, *head.parameters()])
    return logprobs.detach(), entropies.detach(), found


def by_parts(states, head, ends, targets, temperature):
    return scoring.score(states, head, ends, targets, temperature=temperature)


@settings(deadline=None, max_examples=80)
@given(
    seed=st.integers(0, 999),
    states=st.integers(1, 9),
    hidden=st.integers(1, 5),
    vocabulary=st.integers(2, 7),
    tokens=st.integers(1, 12),
    bias=st.booleans(),
    temperature=st.sampled_from([1.0, 0.6, 1.7]),
    rows=st.integers(1, 10),
    kept=st.booleans(),
    wanted=st.sampled_from(["both", "logprobs", "entropies"]),
)
def test_any_cut_gives_the_values_and_gradients_of_all_logits_at_once(
    seed, states, hidden, vocabulary, tokens, bias, temperature, rows, kept, wanted
):
    given = made(seed, states, hidden, vocabulary, tokens, bias)
    one, other = torch.randn(2, tokens, generator=torch.Generator().manual_seed(seed)).double()
    weights = (None if wanted == "entropies" else one, None if wanted == "logprobs" else other)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "_ROWS", rows)
        patch.setattr(scoring, "KEPT_LOGITS", 1 << 24 if kept else 0)
        own = gradients(by_parts, *given, temperature, weights)
    whole = gradients(plain, *given, temperature, weights)
    torch.testing.assert_close(own, whole, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kept", [0, 1 << 24])
def test_gradcheck(bias, kept, monkeypatch):
    monkeypatch.setattr(scoring, "_ROWS", 2)
    monkeypatch.setattr(scoring, "KEPT_LOGITS", kept)
    states, head, ends, targets = made(0, 5, 3, 6, 7, bias)
    names = [name for name, _ in head.named_parameters()]

    def function(states, *parameters):
        called = nn.Linear(3, 6, bias=bias, dtype=torch.float64)
        for name, weight in zip(names, parameters, strict=True):
            delattr(called, name)
            setattr(called, name, weight)
        return by_parts(states, called, ends, targets, 0.7)

    weights = [weight.detach().requires_grad_() for weight in head.parameters()]
    assert torch.autograd.gradcheck(function, [states, *weights])


def test_half_precision_is_summed_up_in_single(monkeypatch):
    """With every row a part of its own, the gradient of the head is as good as from one part."""
    given = made(0, 300, 8, 11, 300, True, torch.bfloat16)
    weights = (torch.ones(300), None)
    monkeypatch.setattr(scoring, "_ROWS", 1)
    logprobs, _, (_, *own) = gradients(by_parts, *given, 1.0, weights)
    assert logprobs.dtype == torch.float32
    _, _, (_, *whole) = gradients(plain, *given, 1.0, (torch.ones(300).double(), None))
    for one, other in zip(own, whole, strict=True):
        assert one.dtype == torch.bfloat16
        torch.testing.assert_close(one.float(), other.float(), atol=0.5, rtol=2e-2)


def test_a_frozen_head_costs_no_gradient():
    states, head, ends, targets = made(0, 5, 3, 6, 7, True)
    head.requires_grad_(False)
    by_parts(states, head, ends, targets, 1.0)[0].sum().backward()
    assert states.grad is not None
    assert head.weight.grad is head.bias.grad is None


def test_no_tensor_is_as_large_as_all_logits(monkeypatch):
    """Forward and backward, whatever is made has fewer numbers than tokens x vocabulary."""
    monkeypatch.setattr(scoring, "KEPT_LOGITS", 0)
    states, head, ends, targets = made(0, 2000, 2, 500, 2000, False)
    largest = Largest()
    with largest:
        logprobs, entropies = by_parts(states, head, ends, targets, 1.0)
        (logprobs.sum() + entropies.sum()).backward()
    assert 0 < largest.numbers <= scoring._ROWS * 500 < 2000 * 500


class Largest(TorchDispatchMode):
    """The most numbers that an operation returned in one tensor."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for made in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(made, torch.Tensor):
                self.numbers = max(self.numbers, made.numel())
        return result
