from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from outfox.core.config import load_yaml
from outfox.core.errors import ConfigError
from outfox.rewards.tree import PRESETS, Ramp, load_tree, preset_names, rubric_hash


def test_presets_are_shipped() -> None:
    assert preset_names() == (
        "default", "finance", "general", "insurance", "medical", "outcome_only",
        "research", "service",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "w", "must_ground"),
    [
        ("default", 0.5, False), ("general", 0.5, False), ("service", 0.5, False),
        ("research", 0.5, True), ("insurance", 1, True),
        ("finance", 1.5, True), ("medical", 2, True),
    ],
)  # fmt: skip
def test_domain_presets_follow_the_outcome_table(name: str, w: float, must_ground: bool) -> None:
    tree = load_tree(name)
    outcome = tree.outcome
    assert tree.must_ground is must_ground
    assert (outcome.right, outcome.wrong, outcome.unsupported) == (1, -w, None)
    assert (outcome.abstain.after_call, outcome.abstain.without_call) == (0, -w / 2)
    assert outcome.unanswerable.abstain_after_call == 1
    assert outcome.unanswerable.abstain_without_call == -w / 2
    assert outcome.unanswerable.other == -w
    assert {"forbidden_tool", "forged_observation", "obeyed_injection", "leak"} <= set(tree.gates)


def test_by_path_and_with_extends(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("extends: default\nif_right: {deduct: {duplicates: 0.2}}\n")
    tree = load_tree(mine)
    assert tree.if_right.deduct == {**load_tree("default").if_right.deduct, "duplicates": 0.2}
    assert tree.gates == load_tree("default").gates


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"version": 1, "gate": []}, "gate: unknown key. Did you mean 'gates'?"),
        ({"version": 2}, "version"),
        ({}, "version: is required"),
        ({"version": 1, "outcome": {"rigth": 1}}, "rigth: unknown key. Did you mean 'right'"),
        ({"version": 1, "outcome": {"right": -1}}, "right (-1) must be above wrong (-0.5)"),
        ({"version": 1, "if_right": {"cap": -1}}, "if_right.cap: must not be negative"),
        ({"version": 1, "if_right": {"deduct": {"x": -0.1}}}, "deduct.x: must not be negative"),
        ({"version": 1, "schedule": {"x": {"to_step": 3}}}, "only deductions are scheduled"),
        ({"version": 1, "settings": {"duplicates": {}}}, "the rubric names no such signal"),
        ({"version": 1, "aggregate": "sum"}, "aggregate"),
        ({"version": 1, "budgets": {"calls": {"limit": 1, "lr": -1}}}, "lr: must not be negative"),
        ({"version": 1, "outcome": {"task_w": [2, 1]}}, "low <= high"),
        ({"extends": "defaults"}, "Did you mean 'default'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_its_path(data: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_tree(data)
    assert said in str(raised.value)


def test_a_rubric_may_not_extend_itself(tmp_path: Path) -> None:
    loop = tmp_path / "loop.yaml"
    loop.write_text(f"extends: {loop}\nversion: 1\n")
    with pytest.raises(ConfigError, match="may not extend itself"):
        load_tree(loop)


def test_unknown_names_and_paths() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'medical'"):
        load_tree("medial")
    with pytest.raises(ConfigError, match="no rubric file at"):
        load_tree("nowhere/mine.yaml")


def test_hash_is_of_what_is_said_not_of_how() -> None:
    data = load_yaml(PRESETS / "default.yaml")
    written_otherwise = {**dict(reversed(data.items())), "must_ground": False}
    assert rubric_hash(load_tree(written_otherwise)) == rubric_hash(load_tree("default"))
    assert rubric_hash(load_tree("general")) == rubric_hash(load_tree("default"))
    assert rubric_hash(load_tree({**data, "must_ground": True})) != rubric_hash(
        load_tree("default")
    )


def test_ramp() -> None:
    ramp = Ramp(from_step=10, to_step=20)
    assert [ramp.share(step) for step in (0, 10, 15, 20, 99)] == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert Ramp(to_step=0).share(0) == 1.0
    assert Ramp(from_step=5, to_step=5).share(4) == 0.0
