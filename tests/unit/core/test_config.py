from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from outfox.core import config
from outfox.core.config import (
    InFamily,
    Part,
    apply_overrides,
    dump_yaml,
    load_recipe,
    load_yaml,
    merge,
    to_data,
    validate,
)
from outfox.core.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    group_size: Annotated[int, Field(ge=1)] = 4
    temperature: float = 1.0
    mode: Literal["greedy", "sampled"] = "sampled"
    deadline: int | str = 1
    out: Path | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    steps: int
    rollout: Rollout = field(default_factory=Rollout)
    more: tuple[Rollout, ...] = ()
    engine: Annotated[Part, InFamily("engine")] = field(
        default_factory=lambda: Part(type="transformers")
    )
    extra: Rollout | int = 0


def refused(data: object, **kwargs: str) -> str:
    with pytest.raises(ConfigError) as caught:
        validate(Run, data, **kwargs)
    return str(caught.value)


def test_plain_data_becomes_the_dataclass():
    run = validate(
        Run, {"steps": 3, "rollout": {"temperature": 1, "out": "x", "names": ["a"]}, "engine": "e"}
    )
    assert run.rollout == Rollout(temperature=1.0, out=Path("x"), names=("a",))
    assert run.engine == Part(type="e")
    assert run.more == ()


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({}, "steps: is required; add it"),
        ({"step": 1, "steps": 1}, "step: unknown key. Did you mean 'steps'?"),
        ({"steps": "3"}, 'steps: must be a valid integer, not "3"; write it without quotes'),
        ({"steps": 3.0}, "steps: must be a valid integer, not 3.0; write 3"),
        ({"steps": True}, "steps: must be a valid integer, not true"),
        (
            {"steps": 1, "rollout": {"group_size": 0}},
            "rollout.group_size: must be greater than or equal to 1, not 0",
        ),
        (
            {"steps": 1, "rollout": {"grupsize": 2}},
            "rollout.grupsize: unknown key. Did you mean 'group_size'?",
        ),
        (
            {"steps": 1, "more": [{}, {"temprature": 2}]},
            "more.1.temprature: unknown key. Did you mean 'temperature'?",
        ),
        (
            {"steps": 1, "rollout": {"mode": "sample"}},
            "rollout.mode: must be 'greedy' or 'sampled', not \"sample\". Did you mean 'sampled'?",
        ),
        (
            {"steps": 1, "rollout": {"deadline": 1.5}},
            "rollout.deadline: must be a valid integer, not 1.5 or must be a valid string, not 1.5",
        ),
        ({"steps": 1, "rollout": 3}, "rollout: must be a mapping of settings, not 3"),
        ({"steps": 1, "engine": {"max_rows": 1}}, "engine: must hold the part's name as"),
        ({"steps": 1, "engine": 3}, "engine: must be the name of a part"),
        (
            {"steps": 1, "extra": {"group_sise": 1}},
            "extra.group_sise: unknown key. Did you mean 'group_size'?",
        ),
        ({"steps": 1, "zz": 1}, "zz: unknown key. Known: engine, extra, more, rollout, steps."),
    ],
)
def test_every_fault_is_one_line_with_path_rule_value_and_remedy(data, line):
    told = refused(data)
    assert told.splitlines()[0].startswith(line)


def test_where_prefixes_the_path_and_all_faults_are_told():
    told = refused({"steps": "x", "rollout": {"names": 3}}, where="stages.0")
    assert [line.partition(": ")[0] for line in told.splitlines()] == [
        "stages.0.steps",
        "stages.0.rollout.names",
    ]


def test_a_validated_run_written_out_is_the_same_run():
    run = validate(Run, {"steps": 1, "engine": {"type": "e", "lr": 1e-6}, "more": [{}]})
    assert validate(Run, load_yaml(dump_yaml(to_data(run)))) == run


# -- overrides ------------------------------------------------------------------------------------
def test_overrides_set_keys_through_the_yaml_parser():
    data = {"steps": 1, "rollout": {"names": ["a", "b"]}, "engine": "transformers"}
    result = apply_overrides(
        data,
        [
            "rollout.temperature=1e-6",
            "rollout.names.0=on",
            "rollout.names.2=c",
            "engine.max_rows=4",
            "more.0.mode=greedy",
            "run.dir=a=b",
            "note=",
        ],
    )
    assert result == {
        "steps": 1,
        "rollout": {"names": ["on", "b", "c"], "temperature": 1e-6},
        "engine": {"type": "transformers", "max_rows": 4},
        "more": [{"mode": "greedy"}],
        "run": {"dir": "a=b"},
        "note": None,
    }
    assert data == {"steps": 1, "rollout": {"names": ["a", "b"]}, "engine": "transformers"}


def test_an_override_into_a_named_rubric_extends_it():
    into = {"rubric": {"extends": "default", "if_right": {"cap": 0.3}}}
    assert apply_overrides({"rubric": "default"}, ["rubric.if_right.cap=0.3"]) == into
    assert merge({"rubric": "default"}, {"rubric": {"if_right": {"cap": 0.3}}}) == into
    other = {"rubric": {"extends": "finance", "must_ground": True}}
    assert merge(into, {"rubric": "mine.yaml"}) == {"rubric": "mine.yaml"}
    assert merge({"rubric": "default"}, other) == other


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("steps", "an override is written key.path=value, not 'steps'"),
        ("=3", "an override is written key.path=value"),
        ("a..b=3", "an override is written key.path=value"),
        ("names.5=x", "names: is a list of 1; '5' must be an index from 0 to 1"),
        ("names.x=1", "names: is a list of 1; 'x' must be an index"),
        ("steps.x=1", "steps: is 1 and has no settings; 'steps.x' cannot be set"),
        ("note=[1", "note: not valid YAML"),
    ],
)
def test_a_bad_override_is_told(override, message):
    with pytest.raises(ConfigError) as caught:
        apply_overrides({"steps": 1, "names": ["a"]}, [override])
    assert str(caught.value).startswith(message)


SCALARS = (
    st.integers(-(2**63), 2**63)
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.sampled_from(["on", "a b"])
)


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4), SCALARS)
def test_an_override_of_a_dumped_value_sets_that_value(keys, value):
    result = apply_overrides({}, [f"{'.'.join(keys)}={dump_yaml(value).split(chr(10))[0]}"])
    for key in keys:
        result = result[key]
    assert result == value


# -- recipes --------------------------------------------------------------------------------------
def test_merge_goes_key_by_key_and_replaces_a_part_of_another_type():
    base = {"engine": {"type": "a", "rows": 1}, "x": {"y": 1, "z": [1, 2]}, "codec": "tags"}
    assert merge(base, {"engine": {"rows": 2}})["engine"] == {"type": "a", "rows": 2}
    assert merge(base, {"engine": {"type": "a", "cap": 1}})["engine"] == {
        "type": "a",
        "rows": 1,
        "cap": 1,
    }
    assert merge(base, {"engine": {"type": "b"}})["engine"] == {"type": "b"}
    assert merge(base, {"engine": "b"})["engine"] == "b"
    assert merge(base, {"codec": {"pauses": True}})["codec"] == {"type": "tags", "pauses": True}
    assert merge(base, {"x": {"z": [3]}})["x"] == {"y": 1, "z": [3]}


def test_an_empty_mapping_empties_below_the_first_level():
    base = {"readings": {"draft": "confidence"}, "x": {"y": {"z": 1}, "v": 2}}
    assert merge(base, {"readings": {}})["readings"] == {}
    assert merge(base, {"x": {"y": {}}})["x"] == {"y": {}, "v": 2}
    assert merge(base, {}) == base


def test_a_recipe_extends_another_and_remembers_both_folders(tmp_path: Path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "base.yaml").write_text("steps: 1\nrollout: {group_size: 8}\n")
    own = tmp_path / "own.yaml"
    own.write_text("extends: base/base.yaml\nrollout: {temperature: 0.5}\n")
    recipe = load_recipe(own, ["steps=7"])
    assert recipe.data == {"steps": 7, "rollout": {"group_size": 8, "temperature": 0.5}}
    assert recipe.name == "own"
    assert recipe.folders == (tmp_path, tmp_path / "base")


def test_a_shipped_recipe_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "when-to-search.yaml").write_text("steps: 3\n")
    monkeypatch.setattr(config, "RECIPES", tmp_path)
    assert load_recipe("when-to-search").data == {"steps": 3}
    with pytest.raises(
        ConfigError, match=r"called 'when-to-serch'\. Did you mean 'when-to-search'"
    ):
        load_recipe("when-to-serch")


def test_bad_recipes_are_told(tmp_path: Path):
    path = tmp_path / "a.yaml"
    with pytest.raises(ConfigError, match="no recipe file at"):
        load_recipe(path)
    path.write_text("- 1\n")
    with pytest.raises(ConfigError, match="a recipe is a mapping of settings, not"):
        load_recipe(path)
    path.write_text("extends: ./a.yaml\n")
    with pytest.raises(ConfigError, match="may not extend itself"):
        load_recipe(path)
    path.write_text("extends: [a]\n")
    with pytest.raises(ConfigError, match="must name one recipe"):
        load_recipe(path)
