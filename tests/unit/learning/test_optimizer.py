"""Learning-rate schedules, and the optimiser's state as tensors."""

from __future__ import annotations

import pytest
import torch

from outfox.core.errors import DataError
from outfox.learning.trainers.optimizer import Optimizer, Schedule


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (Schedule(peak=1.0), [1, 1, 1, 1, 1]),
        (Schedule(peak=1.0, warmup=2), [0.5, 1, 1, 1, 1]),
        (Schedule(peak=1.0, shape="linear", steps=4), [1, 0.75, 0.5, 0.25, 0]),
        (Schedule(peak=1.0, shape="linear", steps=4, end=0.5), [1, 0.875, 0.75, 0.625, 0.5]),
        (Schedule(peak=2.0, shape="cosine", steps=2), [2, 1, 0, 0, 0]),
        (Schedule(peak=1.0, shape="linear", warmup=2, steps=4), [0.5, 1, 1, 0.5, 0]),
    ],
    ids=repr,
)
def test_schedules(schedule, expected):
    assert [schedule.at(step) for step in range(5)] == pytest.approx(expected)


SETTINGS = {"schedule": Schedule(peak=1.0), "betas": (0.9, 0.99), "weight_decay": 0.5}


def moved(optimizer, model, *, gradient=0.0):
    """Names of the weights that a step changes."""
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, gradient)
    optimizer.step(0)
    return {name for name, p in model.named_parameters() if not torch.equal(before[name], p)}


def test_only_matrices_decay(tiny):
    model = tiny()
    changed = moved(Optimizer(model, **SETTINGS), model)
    assert changed == {name for name, p in model.named_parameters() if p.dim() >= 2}


def test_muon_takes_the_hidden_matrices_and_its_own_rate(tiny):
    one, two = tiny(), tiny()
    quick, slow = ({**SETTINGS, "weight_decay": 0.0, "muon_rate": rate} for rate in (0.1, 0.001))
    moved(Optimizer(one, **quick), one, gradient=1.0)
    moved(Optimizer(two, **slow), two, gradient=1.0)
    other = dict(two.named_parameters())
    differ = {name for name, p in one.named_parameters() if not torch.equal(p, other[name])}
    assert differ == {name for name, p in one.named_parameters() if p.dim() == 2} - {
        "model.embed_tokens.weight"
    }


@pytest.mark.parametrize("muon_rate", [None, 0.01])
def test_a_restored_optimizer_goes_on_as_the_first_would(tiny, muon_rate):
    settings = {**SETTINGS, "muon_rate": muon_rate}
    model, again = tiny(), tiny()
    optimizer, restored = (Optimizer(m, **settings) for m in (model, again))
    moved(optimizer, model, gradient=1.0)
    again.load_state_dict(model.state_dict())
    restored.restore(optimizer.tensors())
    moved(optimizer, model, gradient=-0.5)
    moved(restored, again, gradient=-0.5)
    others = dict(again.named_parameters())
    assert all(torch.equal(p, others[name]) for name, p in model.named_parameters())


def test_another_models_state_is_refused(tiny):
    model, other = tiny(), tiny(vocabulary=20)
    optimizer = Optimizer(model, **SETTINGS)
    moved(optimizer, model, gradient=1.0)
    state = optimizer.tensors()
    theirs = Optimizer(other, **SETTINGS)
    with pytest.raises(DataError, match=r"embed_tokens.weight has another shape"):
        theirs.restore(state)
    with pytest.raises(DataError, match="unknown step/unheard"):
        theirs.restore({"step/unheard": torch.zeros(())})
    with pytest.raises(DataError, match="another model or optimiser"):
        Optimizer(model, **SETTINGS, muon_rate=0.1).restore(state)
