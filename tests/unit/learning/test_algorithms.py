"""Algorithm presets: known names, overridable settings, nothing ignored."""

from __future__ import annotations

import pytest

from outfox.core.config import Part
from outfox.core.errors import ConfigError
from outfox.core.parts import Parts
from outfox.learning.algorithms import PRESETS, algorithm
from outfox.learning.credit.batch_scale import BatchScale
from outfox.learning.credit.group_mean import GroupMean
from outfox.learning.credit.leave_one_out import LeaveOneOut
from outfox.learning.losses.mixed import MixedLoss, Ramp

PARTS = Parts()


def made(name, **settings):
    found = algorithm(Part(type=name, settings=settings), PARTS)
    return PARTS.make("credit", found.credit), PARTS.make("loss", found.loss), found.plan


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_makes_its_parts(name):
    credit, loss, plan = made(name)
    assert callable(credit)
    assert isinstance(loss, MixedLoss)
    assert plan["group_size"] >= 1


def test_the_named_algorithms_are_what_their_papers_say():
    assert made("grpo")[:2] == (GroupMean(), MixedLoss(aggregation="grpo"))
    assert made("dr_grpo")[:2] == (GroupMean(scale="none"), MixedLoss(aggregation="dr_grpo"))
    assert made("dapo")[1] == MixedLoss(aggregation="dapo", clip_high=0.28)
    assert made("rloo")[0] == LeaveOneOut()
    assert made("reinforce++")[0] == BatchScale(baseline="batch")
    assert made("reinforce++")[2]["group_size"] == 1
    assert made("gspo")[1].importance == "sequence"


def test_settings_are_overridden_wherever_they_belong():
    credit, loss, plan = made(
        "grpo",
        scale="batch",
        kl_coef=0.04,
        group_size=16,
        entropy={"decision": {"start": 0.3, "end": 0.02, "steps": 60}},
    )
    assert credit == GroupMean(scale="batch")
    assert loss.kl_coef == 0.04
    assert loss.entropy == {"decision": Ramp(start=0.3, end=0.02, steps=60)}
    assert plan["group_size"] == 16


def test_a_part_can_be_exchanged_or_set_by_name():
    assert made("grpo", credit="leave-one-out")[0] == LeaveOneOut()
    assert made("grpo", credit={"type": "batch-scale", "eps": 0.5})[0] == BatchScale(eps=0.5)
    assert made("grpo", credit={"eps": 0.5})[0] == GroupMean(eps=0.5)
    assert made("dapo", loss={"clip_low": 0.1})[1].clip_high == 0.28


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (Part(type="gropo"), r"none is called 'gropo'. Did you mean 'grpo'\?"),
        (Part(type="ppo"), "'ppo' needs a value head"),
        (
            Part(type="grpo", settings={"clip_hihg": 1}),
            r"'grpo' has no setting 'clip_hihg'. Did you mean 'clip_high'\?",
        ),
        (Part(type="rloo", settings={"scale": "none"}), "'rloo' has no setting 'scale'"),
        (Part(type="grpo", settings={"max_redraws": 1}), "'grpo' has no setting 'max_redraws'"),
        (Part(type="grpo", settings={"credit": "grup-mean"}), "Did you mean 'group-mean'"),
    ],
    ids=["name", "ppo", "setting", "other-credit", "plan", "part"],
)
def test_what_is_unknown_is_refused(part, message):
    with pytest.raises(ConfigError, match=message):
        algorithm(part, PARTS)
