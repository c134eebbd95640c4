"""Every built-in credit, loss and trainer passes the public checks, and so do the fakes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from outfox.core.protocols import CreditNotes
from outfox.learning.credit.batch_scale import BatchScale
from outfox.learning.credit.decoupled import Decoupled
from outfox.learning.credit.gae import GAE
from outfox.learning.credit.group_mean import GroupMean
from outfox.learning.credit.leave_one_out import LeaveOneOut
from outfox.learning.credit.turn_level import TurnLevel
from outfox.learning.losses.mixed import MixedLoss, Ramp
from outfox.learning.trainers.local import LocalTrainer
from outfox.testing.learning import (
    FakeTrainer,
    TotalCredit,
    check_credit,
    check_group_relative,
    check_trainer,
)
from outfox.testing.losses import LinearLoss, check_loss

GROUP_RELATIVE = [
    GroupMean(),
    GroupMean(scale="batch"),
    GroupMean(scale="none"),
    LeaveOneOut(),
    BatchScale(),
    Decoupled(),
    Decoupled(batch_scale=True),
    TurnLevel(),
]


@pytest.mark.parametrize(
    "credit", [*GROUP_RELATIVE, BatchScale(baseline="batch"), TotalCredit()], ids=repr
)
def test_credits_keep_their_contract(credit):
    check_credit(credit)


@pytest.mark.parametrize("credit", GROUP_RELATIVE, ids=repr)
def test_credits_that_compare_siblings(credit):
    check_group_relative(credit)


def test_gae_keeps_the_contract_of_a_credit():
    def half(groups):
        rows = [
            [np.full(len(ledger), 0.5, np.float32) for ledger in trajectory.ledgers]
            for group in groups
            for trajectory in group.group.trajectories
        ]
        return CreditNotes(values=rows)

    check_credit(GAE(), notes=half)


@pytest.mark.parametrize(
    "loss",
    [
        LinearLoss(),
        *(MixedLoss(aggregation=how) for how in ("grpo", "dr_grpo", "dapo")),
        MixedLoss(importance="sequence", aggregation="grpo"),
        *(MixedLoss(kl_coef=0.01, kl=estimator) for estimator in ("k2", "k3")),
        MixedLoss(entropy={"all": Ramp(start=0.1)}),
    ],
    ids=repr,
)
def test_losses_keep_their_contract(loss):
    check_loss(loss)


def test_a_mean_within_each_micro_batch_does_not_add_up():
    check_loss(MixedLoss(aggregation="bnpo"), additive=False)
    with pytest.raises(AssertionError, match="shares add up"):
        check_loss(MixedLoss(aggregation="bnpo"))


def test_a_loss_that_pushes_the_wrong_way_is_caught():
    def wrong(tokens, outputs):
        result = LinearLoss()(tokens, outputs)
        return replace(result, loss=-result.loss)

    wrong.needs_reference = False
    with pytest.raises(AssertionError, match="raises what had a positive advantage"):
        check_loss(wrong)


def test_a_credit_that_pays_observation_tokens_is_caught():
    def paying(groups, notes):
        credits = TotalCredit()(groups, notes)
        return tuple(
            tuple(replace(one, advantages=tuple(row + 1 for row in one.advantages)) for one in own)
            for own in credits
        )

    with pytest.raises(AssertionError, match="0 outside policy tokens"):
        check_credit(paying)


def test_a_trainer_that_forgets_its_state_is_caught(tmp_path):
    class Forgetful(FakeTrainer):
        def load(self, folder):
            super().load(folder)
            self._weight = 0.0

    with pytest.raises(AssertionError, match="goes on bit for bit"):
        check_trainer(Forgetful, tmp_path)


def tiny():
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=16,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=64,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=0,
            pad_token_id=0,
        )
    )


@pytest.mark.parametrize(
    "make",
    [
        FakeTrainer,
        lambda: LocalTrainer(tiny(), learning_rate=1e-3),
        lambda: LocalTrainer(
            tiny(), MixedLoss(kl_coef=0.1), learning_rate=1e-3, warmup=3, weight_decay=0.1
        ),
        lambda: LocalTrainer(
            tiny(), learning_rate=1e-3, recompute_old_logprobs=True, schedule="cosine"
        ),
    ],
    ids=["fake", "local", "local-kl", "local-recompute"],
)
def test_trainers_keep_their_contract(make, tmp_path):
    check_trainer(make, tmp_path)
