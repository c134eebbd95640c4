"""Drawing tokens: the inverse CDF, cut and tempered, and what it reports."""

import numpy as np
import pytest
import torch

from outfox.core.errors import EngineError
from outfox.policies.engines.continuous.sampling import Rule, draw

PLAIN = Rule(temperature=1.0, top_p=1.0, forbidden=())


def logits(size: int, rows: int = 1) -> torch.Tensor:
    return torch.randn(rows, size, generator=torch.Generator().manual_seed(size)) * 2


@pytest.mark.parametrize("size", [3, 63, 64, 65, 128, 1000])
def test_a_draw_is_the_inverse_of_the_cumulative_sum(size: int):
    row = logits(size)
    noise = np.linspace(0, 1, 401)[:-1]
    drawn = draw(row, [0] * 400, [PLAIN] * 400, noise)
    probs = row[0].double().softmax(-1).numpy()
    expected = np.searchsorted(probs.cumsum(), noise, side="right")
    off = np.flatnonzero(expected != drawn.token_ids)  # only where noise meets an edge
    edges = probs.cumsum()[np.minimum(expected, np.asarray(drawn.token_ids))]
    assert np.abs(edges - noise)[off].max(initial=0) < 1e-6
    np.testing.assert_allclose(drawn.logprobs, np.log(probs[drawn.token_ids]), atol=1e-5)


@pytest.mark.parametrize("noise", [0.0, 1 - 2**-53])
def test_a_token_without_probability_is_never_drawn(noise: float):
    row = torch.full((1, 200), float("-inf"))
    row[0, [5, 70, 150]] = 0.0
    drawn = draw(row, [0], [PLAIN], np.asarray([noise]))
    assert drawn.token_ids == [5 if noise == 0 else 150]
    assert drawn.logprobs == pytest.approx([np.log(1 / 3)])


def test_every_row_keeps_its_own_rule():
    row = torch.tensor([[0.0, 1.0, 2.0, 3.0]])
    rules = [
        PLAIN,
        Rule(temperature=0.0, top_p=1.0, forbidden=()),
        Rule(temperature=0.0, top_p=1.0, forbidden=(3,)),
        Rule(temperature=0.5, top_p=1.0, forbidden=()),
        Rule(temperature=1.0, top_p=0.5, forbidden=()),
        Rule(temperature=1.0, top_p=0.7, forbidden=()),
        Rule(temperature=1.0, top_p=1.0, forbidden=(0, 3)),
    ]
    drawn = draw(row, [0] * 7, rules, np.full(7, 1e-9))
    assert drawn.token_ids == [0, 3, 2, 0, 3, 2, 1]
    e = np.exp(np.arange(4.0))
    f = np.exp(2 * np.arange(4.0))
    shares = [
        e[0] / e.sum(),
        e[3] / e.sum(),  # greedy: at temperature 1
        e[2] / e[:3].sum(),
        f[0] / f.sum(),
        1.0,
        e[2] / e[2:].sum(),
        e[1] / e[1:3].sum(),
    ]
    np.testing.assert_allclose(drawn.logprobs, np.log(shares), atol=1e-6)


def test_draws_of_one_row_are_what_they_would_be_of_their_own_rows():
    rows, noise = logits(130, rows=3), np.random.default_rng(0).random(40)
    of = [number % 3 for number in range(40)]
    rules = [PLAIN, Rule(temperature=0.0, top_p=1.0, forbidden=(5,))]
    given = [rules[number % 2] for number in range(40)]
    together = draw(rows, of, given, noise)
    for number in range(40):
        alone = draw(rows[of[number]][None], [0], [given[number]], noise[number : number + 1])
        assert alone.token_ids == [together.token_ids[number]]
        assert alone.logprobs == [together.logprobs[number]]


def test_the_logits_given_are_left_as_they_are():
    row = logits(70)
    before = row.clone()
    draw(row, [0], [Rule(temperature=0.5, top_p=0.5, forbidden=(1,))], np.zeros(1))
    assert torch.equal(row, before)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_broken_logits_are_an_engine_error(bad: float):
    row = logits(70)
    row[0, 3] = bad
    with pytest.raises(EngineError, match="must be numbers"):
        draw(row, [0], [PLAIN], np.asarray([0.5]))
