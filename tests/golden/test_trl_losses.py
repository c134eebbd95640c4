"""Losses, gradients and advantages equal those of TRL 1.16 (made by `scripts/trl_golden.py`)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from outfox.core.protocols import CreditNotes
from outfox.core.results import Batch, Sample
from outfox.learning.credit.decoupled import Decoupled
from outfox.learning.credit.group_mean import GroupMean
from outfox.learning.losses.mixed import MixedLoss
from outfox.learning.losses.tokens import Outputs, totals_of, trained_tokens
from outfox.testing.learning import scored_group

GOLDEN = json.loads((Path(__file__).parent / "data" / "trl_losses.json").read_text())
INPUTS = {name: np.array(values) for name, values in GOLDEN["inputs"].items()}
LOGITS = torch.tensor(GOLDEN["inputs"]["logits"], dtype=torch.float64)
TIGHT = {"rtol": 1e-6, "atol": 1e-15}


def padded(values):
    """[T] for a prompt of one token, then the completion; float64, so that nothing is rounded."""
    return np.concatenate([[0.0], values])


def the_sample(row):
    length = int(INPUTS["completion_mask"][row].sum())
    mask = np.concatenate([[False], INPUTS["tool_mask"][row][:length].astype(bool)])
    return Sample(
        token_ids=np.concatenate([[0], INPUTS["ids"][row][:length]]),
        loss_mask=mask,
        rollout_logprobs=padded(INPUTS["old"][row][:length]),
        advantages=np.where(mask, INPUTS["advantages"][row], 0.0),
        weights=np.ones(length + 1),
    )


SAMPLES = [the_sample(row) for row in range(len(LOGITS))]
MICRO = GOLDEN["micro"]
BATCH = Batch(micro=tuple(tuple(SAMPLES[k : k + MICRO]) for k in range(0, len(SAMPLES), MICRO)))


def outputs(logits, start, samples):
    """Flat logprobs and entropies of the trained tokens, in float64."""
    rows = []
    for k, sample in enumerate(samples):
        trained = torch.from_numpy(sample.loss_mask[1:])
        log_p = logits[start + k][: len(trained)][trained].log_softmax(-1)
        ids = torch.from_numpy(sample.token_ids[1:])[trained]
        rows.append((log_p.gather(-1, ids[:, None])[:, 0], -(log_p.exp() * log_p).sum(-1)))
    logprobs, entropies = zip(*rows, strict=True)
    return Outputs(logprobs=torch.cat(logprobs), entropies=torch.cat(entropies))


def name(case):
    return "-".join(str(value) for value in case["settings"].values())


@pytest.mark.parametrize("case", GOLDEN["losses"], ids=name)
def test_loss_and_gradient_equal_trls(case):
    settings = dict(case["settings"])
    on_policy = settings.pop("on_policy")
    loss = MixedLoss(**settings, fixed_length=GOLDEN["fixed_length"])
    logits = LOGITS.clone().requires_grad_()
    total, start = 0.0, 0
    for samples in BATCH.micro:
        tokens = trained_tokens(
            samples,
            totals=totals_of(BATCH),
            update=0,
            device=torch.device("cpu"),
            old_logprobs=None if on_policy else [s.rollout_logprobs for s in samples],
            ref_logprobs=[
                padded(INPUTS["ref"][start + k][: len(s) - 1]) for k, s in enumerate(samples)
            ],
        )
        result = loss(tokens, outputs(logits, start, samples))
        result.loss.backward()
        total += result.loss.item()
        start += len(samples)
    np.testing.assert_allclose(total, case["loss"], **TIGHT)
    np.testing.assert_allclose(logits.grad.numpy(), np.array(case["gradient"]), **TIGHT)
    assert np.abs(case["gradient"]).max() > 1e-6


def groups_of(case):
    return [scored_group(g, group_id=f"{k}/q") for k, g in enumerate(case["groups"])]


def flat(credits):
    return [one.advantages[0][2] for own in credits for one in own]


@pytest.mark.parametrize("case", GOLDEN["advantages"], ids=lambda c: f"{c['name']}-{c['scale']}")
def test_group_mean_equals_trls_scale_rewards(case):
    credit = GroupMean(scale=case["scale"], eps=1e-4, floor=0, wrong_floor=0)
    np.testing.assert_allclose(
        flat(credit(groups_of(case), CreditNotes())), case["advantages"], rtol=1e-6, atol=1e-7
    )


def test_decoupled_equals_trls_normalize_then_sum():
    case = GOLDEN["decoupled"]
    groups = [
        scored_group(
            [sum(signals) for signals in group],
            parts=[{"a": a, "b": b} for a, b in group],
            group_id=f"{k}/q",
        )
        for k, group in enumerate(case["groups"])
    ]
    credit = Decoupled(eps=1e-4, floor=0, wrong_floor=0, batch_scale=True)
    np.testing.assert_allclose(
        flat(credit(groups, CreditNotes())), case["advantages"], rtol=1e-5, atol=1e-7
    )


def test_the_golden_numbers_are_trls():
    assert GOLDEN["trl"].startswith("1.16.")
    clipped = [c for c in GOLDEN["losses"] if not c["settings"]["on_policy"]]
    assert len({round(c["loss"], 9) for c in clipped}) == len(clipped)
