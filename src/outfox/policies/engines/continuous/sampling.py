# pyright: standard
"""Drawing one token per row by inverse CDF, each row with a uniform number of its own.

A row's cumulative sum is taken in two levels (blocks of 64, then inside one block, in float64), so
that a draw costs one pass over the vocabulary. It depends on nothing but the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from outfox.core.errors import EngineError

_BLOCK = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one row is drawn; temperature 0 is greedy."""

    temperature: float
    top_p: float
    forbidden: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One token per row."""

    token_ids: list[int]
    logprobs: list[float]
    """Under the distribution drawn from (forbidden, temperature and top_p applied); for greedy
    rows, whose own distribution is a point, at temperature 1."""


def draw(logits: Tensor, rows: Sequence[int], rules: Sequence[Rule], noise: Tensor) -> Drawn:
    """J draws: each from its row of `logits` [R, V], by its rule, with its `noise` in [0, 1).

    Draws of equal row and rule share one distribution. Raises EngineError where logits are not
    numbers.
    """
    kinds = {kind: place for place, kind in enumerate(dict.fromkeys(zip(rows, rules, strict=True)))}
    places = [kinds[kind] for kind in zip(rows, rules, strict=True)]
    used = [row for row, _ in kinds]
    if used != list(range(len(logits))):
        logits = logits[used]
    return _draw(logits, [rule for _, rule in kinds], places, noise)


def _draw(logits: Tensor, rules: Sequence[Rule], places: Sequence[int], noise: Tensor) -> Drawn:
    """One distribution per row and rule; `places`: which of them each draw is from."""
    logits = _tempered(logits.float(), rules)
    probs = torch.softmax(logits, -1)
    cut = [row for row, rule in enumerate(rules) if rule.top_p < 1 and rule.temperature > 0]
    if cut:
        limits = torch.tensor([rules[row].top_p for row in cut], device=logits.device)
        probs[cut] = _nucleus(probs[cut], limits)
    place = torch.tensor(places, device=logits.device)
    chosen, total = _invert(probs, place, noise)
    greedy = [row for row, rule in enumerate(rules) if rule.temperature == 0]
    if greedy:
        best = logits.argmax(-1)[place]
        point = torch.tensor([rule.temperature == 0 for rule in rules], device=logits.device)
        chosen = torch.where(point[place], best, chosen)
    picked = probs[place, chosen].double()
    logprobs = picked.log() - total.log()
    if not bool(torch.isfinite(logprobs).all()):
        raise EngineError(
            "Logits must be numbers; the model returned NaN or infinity. Its weights are broken: "
            "go back to an earlier checkpoint, or lower the learning rate."
        )
    return Drawn(token_ids=chosen.tolist(), logprobs=logprobs.tolist())


def _tempered(logits: Tensor, rules: Sequence[Rule]) -> Tensor:
    if any(rule.temperature not in (0, 1) for rule in rules):
        scale = [rule.temperature or 1.0 for rule in rules]
        logits = logits / torch.tensor(scale, device=logits.device)[:, None]
    pairs = [(row, token) for row, rule in enumerate(rules) for token in rule.forbidden]
    if pairs:
        rows, tokens = zip(*pairs, strict=True)
        logits = logits.clone()
        logits[list(rows), list(tokens)] = float("-inf")
    return logits


def _nucleus(probs: Tensor, limits: Tensor) -> Tensor:
    """Zero outside the smallest set of tokens whose probability reaches the limit."""
    ordered, order = probs.sort(dim=-1, descending=True, stable=True)
    before = ordered.double().cumsum(-1) - ordered
    ordered[before >= limits[:, None]] = 0.0
    return torch.zeros_like(probs).scatter_(1, order, ordered)


def _invert(probs: Tensor, place: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """[J] tokens where the cumulative sum of a draw's row passes `noise`; [J] float64 totals."""
    size = probs.shape[1]
    whole = size // _BLOCK * _BLOCK
    sums = probs[:, :whole].unflatten(1, (-1, _BLOCK)).sum(-1, dtype=torch.float64)
    if whole < size:
        rest = probs[:, whole:].sum(-1, keepdim=True, dtype=torch.float64)
        sums = torch.cat([sums, rest], 1)
    edges = sums.cumsum(1)
    sums, edges = sums[place], edges[place]
    total = edges[:, -1]
    target = torch.minimum(noise * total, torch.nextafter(total, torch.zeros_like(total)))
    block = (edges <= target[:, None]).sum(1, keepdim=True).clamp_(max=edges.shape[1] - 1)
    start = edges.gather(1, block) - sums.gather(1, block)
    index = block * _BLOCK + torch.arange(_BLOCK, device=probs.device)
    inside = probs[place[:, None], index.clamp(max=size - 1)].double()
    inside = inside.masked_fill(index >= size, 0.0)
    passed = (start + inside.cumsum(1) <= target[:, None]).sum(1)
    # Where the two levels round differently, the last token that has a probability.
    last = ((inside > 0) * torch.arange(_BLOCK, device=probs.device)).amax(1)
    return block[:, 0] * _BLOCK + torch.minimum(passed, last), total
