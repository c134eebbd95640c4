import hashlib
import sys
from pathlib import Path

import pytest

from outfox.core import parts as parts_module
from outfox.core.config import Part
from outfox.core.errors import ConfigError, ContractError
from outfox.core.extras import distribution, extras, install_hint
from outfox.core.parts import FAMILIES, Parts, built_ins, settings_type

USER_CODE = """
from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from nowhere import Model


@dataclass(frozen=True)
class Scale:
    model: Model
    _: KW_ONLY
    factor: float = 2.0
    mode: Literal["mean", "sum"] = "mean"
    names: list[str] = field(default_factory=list)


def plain(first, second: Model, *, shift: int, note: str | None = None, more: list[int] = [1]):
    return (first, second, shift, note, more)


def untyped(first, *, shift=1): ...


def typing_only(*, model: Model): ...


class Old:
    def __init__(self, model: Model, *, rows: int = 3) -> None:
        self.rows = rows


number = 3
"""


@pytest.fixture
def user(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(USER_CODE)
    return tmp_path


def refused(parts: Parts, name: str, **settings: object) -> str:
    with pytest.raises(ConfigError) as caught:
        parts.resolve("engine", Part(type=name, settings=settings), where="engine")
    return str(caught.value)


def test_keyword_only_parameters_are_settings_and_the_rest_is_supplied(user: Path):
    parts = Parts(folders=(user,))
    scale = parts.make("credit", Part(type="mine.py:Scale", settings={"factor": 3}), "model")
    assert (scale.model, scale.factor, scale.mode, scale.names) == ("model", 3.0, "mean", [])
    made = parts.make("credit", Part(type="mine.py:plain", settings={"shift": 1}), "a", "b")
    assert made == ("a", "b", 1, None, [1])
    assert parts.make("credit", Part(type="mine.py:Old"), "model").rows == 3


def test_the_run_folder_gets_every_setting(user: Path):
    found = Parts(folders=(user,)).resolve("credit", Part(type="mine.py:Scale"))
    assert found.data == {"type": "mine.py:Scale", "factor": 2.0, "mode": "mean", "names": []}


def test_wrong_settings_are_told_with_their_path(user: Path):
    parts = Parts(folders=(user,))
    assert refused(parts, "mine.py:Scale", factr=1) == (
        "engine.factr: unknown key. Did you mean 'factor'?"
    )
    assert refused(parts, "mine.py:Scale", factor="x").startswith("engine.factor: must be")
    assert refused(parts, "mine.py:plain") == "engine.shift: is required; add it"
    assert refused(parts, "mine.py:Scale", model="x").startswith("engine.model: unknown key")
    assert "needs a type annotation" in refused(parts, "mine.py:untyped")
    assert "must be readable at run time" in refused(parts, "mine.py:typing_only")
    assert "is a class or function, not 3" in refused(parts, "mine.py:number")


def test_a_user_file_is_loaded_once_and_its_hash_kept(user: Path):
    parts = Parts(folders=(user,))
    first = parts.load("credit", "mine.py:Scale")
    assert parts.load("credit", "mine.py:Scale") is first
    path = user / "mine.py"
    assert parts.files == {str(path): hashlib.sha256(path.read_bytes()).hexdigest()}
    path.write_text(USER_CODE + "\nadded = 1\n")
    assert parts.load("credit", "mine.py:Scale") is not first
    other = user / "other"
    other.mkdir()
    (other / "mine.py").write_text("Scale = int\n")
    assert Parts(folders=(other,)).load("credit", "mine.py:Scale") is int


def test_the_recipe_folder_comes_before_the_current_one(
    user: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(user)
    assert callable(Parts().load("credit", "mine.py:plain"))
    other = tmp_path_factory.mktemp("other")
    (other / "mine.py").write_text("plain = 5\n")
    assert Parts(folders=(other,)).load("credit", "mine.py:plain") == 5


def test_no_user_code_refuses_files_and_modules(user: Path):
    parts = Parts(folders=(user,), allow_user_code=False)
    for name in ("mine.py:Scale", "json:loads"):
        assert f"'{name}' is code of your own, which --no-user-code refuses" in refused(parts, name)
    assert parts.files == {}


def test_user_code_that_cannot_be_loaded_is_told(user: Path):
    parts = Parts(folders=(user,))
    assert "no file 'yours.py' in" in refused(parts, "yours.py:x")
    assert "Did you mean 'Scale'?" in refused(parts, "mine.py:Scal")
    (user / "bad.py").write_text("x = 1\ndef (\n")
    assert "bad.py cannot be loaded: line 2:" in refused(parts, "bad.py:x")
    (user / "raises.py").write_text("1 / 0\n")
    assert "cannot be loaded: ZeroDivisionError" in refused(parts, "raises.py:x")
    assert not [name for name in sys.modules if name.endswith("_raises")]
    assert "no module 'nowhere_at_all'" in refused(parts, "nowhere_at_all:x")
    assert "json has no 'load5'. Did you mean" in refused(parts, "json:load5")


def test_an_error_of_ours_in_user_code_is_not_disguised(user: Path):
    (user / "ours.py").write_text(
        "from outfox.core.errors import ContractError\nraise ContractError('mine')\n"
    )
    with pytest.raises(ContractError, match="mine"):
        Parts(folders=(user,)).load("credit", "ours.py:x")


# -- built-ins ------------------------------------------------------------------------------------
@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the package, with two engines, a helper, and a package part."""
    root = tmp_path / "fake"
    folder = root / "policies" / "engines"
    folder.mkdir(parents=True)
    (folder / "local_one.py").write_text("def part(*, rows: int = 1): ...\n")
    (folder / "broken.py").write_text("import torch_that_is_missing\npart = 1\n")
    (folder / "helper.py").write_text("parts = 1\n")
    (folder / "packed").mkdir()
    (folder / "packed" / "__init__.py").write_text("from x import Thing as part\n")
    monkeypatch.setattr(parts_module, "_PACKAGE", root)
    return root


def test_built_ins_are_the_files_that_bind_part_found_without_import(package: Path):
    assert built_ins("engine") == {
        "broken": "outfox.policies.engines.broken",
        "local-one": "outfox.policies.engines.local_one",
        "packed": "outfox.policies.engines.packed",
    }


def test_an_unknown_built_in_is_told(package: Path):
    assert "no engine is called 'locl-one'. Did you mean 'local-one'?" in refused(
        Parts(), "locl-one"
    )
    with pytest.raises(ConfigError, match=r"no family of parts is called 'engin'.*'engine'"):
        Parts().load("engin", "x")


def test_a_missing_package_is_told_with_the_extra_that_brings_it(
    package: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = package / "policies" / "engines"
    (folder / "broken.py").write_text("import babel_that_is_missing\npart = 1\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(parts_module, "built_ins", lambda _: {"broken": "broken"})
    monkeypatch.setattr(parts_module, "install_hint", lambda module: f"install {module}")
    assert refused(Parts(), "broken") == (
        "engine: engine 'broken' needs 'babel_that_is_missing'; install babel_that_is_missing"
    )


def test_extras_come_from_the_metadata():
    assert "torch" in extras()["local"]
    assert install_hint("torch") == "pip install 'outfox[local]'"
    assert install_hint("no_such.thing") == "pip install no-such-thing"
    assert distribution("Pydantic_Monty[x] >=1; extra == 'sandbox'") == "pydantic-monty"


# Trackers need their packages: tests/trackers.
@pytest.mark.parametrize("family", [each for each in FAMILIES if each != "tracker"])
def test_every_built_in_has_readable_settings(family: str):
    parts = Parts(allow_user_code=False)
    for name in built_ins(family):
        assert settings_type(parts.load(family, name)).__name__ == "settings"
