import math
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from outfox.core.errors import ConfigError
from outfox.core.yaml import dump_yaml, load_yaml

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
INTEGERS = st.integers(-(2**63), 2**64 - 1)
DATA = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(DATA)
@example({"\x85": "\x85 \u2028 \r\n \ufeff", "k" * 200: "v " * 200})
def test_what_is_dumped_is_loaded_again(data):
    loaded = load_yaml(dump_yaml(data))
    assert loaded == data
    assert repr(loaded) == repr(data)  # 1 == 1.0 == True, but they are not the same setting


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("1E+3", 1000.0),
        ("-.5", -0.5),
        ("1.", 1.0),
        (".inf", math.inf),
        ("017", 17),
        ("0o17", 15),
        ("0x1F", 31),
        ("on", "on"),
        ("yes", "yes"),
        ("no", "no"),
        ("2024-01-01", "2024-01-01"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("true", True),
        ("~", None),
        ("", None),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("!!float 1", 1.0),
        ("{a: [1, 2]}", {"a": [1, 2]}),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text, value):
    assert load_yaml(text) == value
    assert type(load_yaml(text)) is type(value)


def test_nan_is_a_float():
    assert math.isnan(load_yaml(".nan"))


def test_aliases_and_merge_keys():
    text = "base: &base {lr: 1e-3, steps: 5}\nrun:\n  <<: *base\n  steps: 9\nagain: *base\n"
    loaded = load_yaml(text)
    assert loaded["run"] == {"lr": 1e-3, "steps": 9}
    assert loaded["again"] == loaded["base"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "<text>:4: duplicate key 'c'"),
        ("a: 1\n1: 2\n", "<text>:2: keys are strings, not 1"),
        ("a: 1\nb: !python/name:os.system 1\n", "<text>:2: the tag"),
        ("a: &x [*x]", "an anchor holds itself"),
        ("a: 1\nb: *nowhere", "<text>:2: not valid YAML: found undefined alias"),
        ("a: 1\nb: c: d", "<text>:2: not valid YAML"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
        ("!!int x", "'x' is no int"),
        ("a:\n  <<: 3", "`<<` merges mappings"),
        ("\x00", "not valid YAML"),
    ],
)
def test_faults_are_told_with_their_line(text, message):
    with pytest.raises(ConfigError, match=None) as caught:
        load_yaml(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_is_named_in_its_errors(tmp_path: Path):
    path = tmp_path / "recipe.yaml"
    path.write_text("a: 1\na: 2\n")
    with pytest.raises(ConfigError, match=r"recipe\.yaml:2: duplicate key"):
        load_yaml(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read as UTF-8 text"):
        load_yaml(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_yaml(tmp_path / "missing.yaml")
