"""Handing weights to a model in place."""

import pytest
import torch

from outfox.core.errors import ContractError
from outfox.policies.engines.continuous.weights import copy_weights
from outfox.policies.tiny import build_model, build_tokenizer

TOKENIZER = build_tokenizer(["Paris"])


def model(seed: int):
    return build_model(TOKENIZER, hidden=16, heads=2, layers=1, intermediate=8, seed=seed)


def test_weights_are_copied_not_shared():
    mine, other = model(0), model(1)
    place = mine.lm_head.weight.data_ptr()
    copy_weights(mine, other.state_dict())
    assert mine.lm_head.weight.data_ptr() == place
    with torch.no_grad():
        expected = other.lm_head.weight.clone()
        other.lm_head.weight.zero_()
    assert torch.equal(mine.lm_head.weight, expected)


def test_a_tied_weight_may_come_under_one_of_its_names():
    mine, weights = model(0), dict(model(1).state_dict())
    del weights["lm_head.weight"]
    copy_weights(mine, weights)
    assert torch.equal(mine.lm_head.weight, weights["model.embed_tokens.weight"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.pop("model.norm.weight"), r"missing: \['model.norm.weight'\]"),
        (lambda w: w.update(extra=torch.zeros(1)), r"unknown: \['extra'\]"),
        (lambda w: w.update({"model.norm.weight": torch.zeros(3)}), r"other shape: \['model.norm"),
    ],
)
def test_weights_that_do_not_fit_change_nothing(change, message: str):
    mine, weights = model(0), dict(model(1).state_dict())
    before = {name: tensor.clone() for name, tensor in mine.state_dict().items()}
    change(weights)
    with pytest.raises(ContractError, match=message):
        copy_weights(mine, weights)
    assert all(torch.equal(before[n], t) for n, t in mine.state_dict().items())
