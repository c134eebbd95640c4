from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass

import pytest

from outfox.core.notes import argument_notes, dataclasses_in, field_notes, notes_of
from outfox.core.parts import FAMILIES, Parts, built_ins, settings_type


@dataclass(frozen=True, kw_only=True)
class Inner:
    size: int = 1
    """How large
    it is."""


@dataclass(frozen=True, kw_only=True)
class Outer:
    bare: int = 0
    inner: Inner = field(default_factory=Inner)
    """What is inside."""
    many: Mapping[str, Inner | None] = field(default_factory=dict)


def written(rows: int = 1, *, name: str = "", rest: bool = False) -> None:
    """Does something.

    Args:
        rows (int): How many.
        name: What it is called,
            or nothing.

    Raises ConfigError never: it does nothing.
    """


def test_a_field_has_the_docstring_under_it():
    assert notes_of(Inner) == field_notes(Inner) == {"size": "How large it is."}
    assert field_notes(Outer) == {"inner": "What is inside."}


def test_a_parameter_has_its_line_of_args():
    expected = {"rows": "How many.", "name": "What it is called, or nothing."}
    assert notes_of(written) == argument_notes(written) == expected
    assert argument_notes(lambda: None) == {}


def test_a_dataclass_that_was_made_has_no_notes():
    assert field_notes(make_dataclass("Made", [("size", int, 1)])) == {}


def test_dataclasses_are_found_at_any_depth():
    assert dataclasses_in(Outer) == {"Outer": Outer, "Inner": Inner}
    assert dataclasses_in(int | None) == {}


# Trackers need their packages: tests/trackers.
@pytest.mark.parametrize("family", [each for each in FAMILIES if each != "tracker"])
def test_every_setting_of_every_part_says_what_it_means(family: str):
    for name in built_ins(family):
        factory = Parts().load(family, name)
        told, settings = notes_of(factory), settings_type(factory)
        nested = dataclasses_in(settings)
        for each in settings.__dataclass_fields__:
            whole = settings.__dataclass_fields__[each].type in nested.values()
            assert whole or told.get(each), f"{family} {name}: {each}"
        for cls in nested.values():
            if cls is not settings:
                assert field_notes(cls).keys() == cls.__dataclass_fields__.keys(), cls
