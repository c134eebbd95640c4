"""Learning-rate schedules, and the optimiser's state as tensors."""

from __future__ import annotations

import pytest
import torch

from outfox.core.errors import DataError
from outfox.learning.trainers.optimizer import (
    Schedule,
    adamw,
    optimizer_tensors,
    restore_optimizer,
)


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


def test_only_matrices_decay(tiny):
    optimizer = adamw(tiny(), learning_rate=1, betas=(0.9, 0.99), weight_decay=0.5)
    decay = {p.dim(): g["weight_decay"] for g in optimizer.param_groups for p in g["params"]}
    assert decay == {2: 0.5, 1: 0.0}


def test_another_models_state_is_refused(tiny):
    model, other = tiny(), tiny(vocabulary=20)
    optimizer = adamw(model, learning_rate=1e-3, betas=(0.9, 0.99), weight_decay=0)
    model(torch.ones(1, 2, dtype=torch.long)).logits.sum().backward()
    optimizer.step()
    state = optimizer_tensors(optimizer, model)
    theirs = adamw(other, learning_rate=1e-3, betas=(0.9, 0.99), weight_decay=0)
    with pytest.raises(DataError, match=r"embed_tokens.weight has another shape"):
        restore_optimizer(theirs, other, state)
    with pytest.raises(DataError, match="unknown step/unheard"):
        restore_optimizer(theirs, other, {"step/unheard": torch.zeros(())})
