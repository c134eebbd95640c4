# pyright: standard
"""Drawing one token per row by inverse CDF, each row with a uniform number of its own.

A row's cumulative sum is taken in two levels (blocks of 64, then inside one block, in float64), so
that a draw costs one pass over the vocabulary. It depends on nothing but the row. What is left of
a draw after that pass is a few numbers, for which numpy is quicker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from outfox.core.errors import EngineError

_BLOCK = 64
_BELOW_ONE = 1 - 2**-52
"""Of a sum, less than the sum in float64."""


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


def draw(
    logits: Tensor, rows: Sequence[int], rules: Sequence[Rule], noise: NDArray[np.float64]
) -> Drawn:
    """J draws: each from its row of `logits` [R, V], by its rule, with its `noise` in [0, 1).

    Draws of equal row and rule share one distribution. Raises EngineError where logits are not
    numbers.
    """
    kinds: dict[tuple[int, int], int] = {}
    place = [
        kinds.setdefault((row, id(rule)), len(kinds)) for row, rule in zip(rows, rules, strict=True)
    ]
    used = [row for row, _ in kinds]
    if used != list(range(len(logits))):
        logits = logits[used]
    known = {id(rule): rule for rule in rules}
    return _draw(logits, [known[rule] for _, rule in kinds], np.asarray(place), noise)


def _draw(
    logits: Tensor, rules: Sequence[Rule], place: NDArray[np.int64], noise: NDArray[np.float64]
) -> Drawn:
    """One distribution per row and rule; `place`: which of them each draw is from."""
    logits = _tempered(logits.float(), rules)
    probs = torch.softmax(logits, -1)
    cut = [row for row, rule in enumerate(rules) if rule.top_p < 1 and rule.temperature > 0]
    if cut:
        limits = torch.tensor([rules[row].top_p for row in cut], device=logits.device)
        probs[cut] = _nucleus(probs[cut], limits)
    blocks = functional.pad(probs, (0, -probs.shape[1] % _BLOCK)).unflatten(1, (-1, _BLOCK))
    edges = blocks.sum(-1, dtype=torch.float64).cpu().numpy().cumsum(1)[place]
    each, total = np.arange(len(place)), edges[:, -1]
    target = np.minimum(noise, _BELOW_ONE) * total
    block = (edges <= target[:, None]).sum(1)
    target -= np.where(block > 0, edges[each, block - 1], 0.0)
    point = best = None
    if any(rule.temperature == 0 for rule in rules):
        point = np.asarray([rule.temperature == 0 for rule in rules])[place]
        best = logits.argmax(-1).cpu().numpy()[place]
        block = np.where(point, best // _BLOCK, block)
    inside = blocks[torch.from_numpy(place), torch.from_numpy(block)].double().cpu().numpy()
    sums = inside.cumsum(1)
    # The two levels round differently: never beyond the last token that has a probability.
    target = np.minimum(target, _BELOW_ONE * sums[:, -1])
    offset = (sums <= target[:, None]).sum(1)
    if point is not None and best is not None:
        offset = np.where(point, best % _BLOCK, offset)
    picked = inside[each, np.minimum(offset, _BLOCK - 1)]
    if not (picked > 0).all():  # NaN is not either
        raise EngineError(
            "Logits must be numbers; the model returned NaN or infinity. Its weights are broken: "
            "go back to an earlier checkpoint, or lower the learning rate."
        )
    logprobs = np.log(picked) - np.log(total)
    return Drawn(token_ids=(block * _BLOCK + offset).tolist(), logprobs=logprobs.tolist())


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
