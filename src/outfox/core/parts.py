"""From a part's name to the object: nothing registers anything.

    {type: group-mean, scale: batch} ─resolve─▶ Resolved(factory, settings) ─make─▶ object

A built-in NAME of a family is the module NAME of the family's folder, which binds it as `part`;
`module:attr` and `path.py:attr` are the user's own. Positional parameters of a factory are supplied
by the caller of `make`; its keyword-only parameters (or keyword-only dataclass fields) are the YAML
settings, with their defaults, so that a new part is one file.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

from outfox.core.config import Part, to_data, validate
from outfox.core.errors import ConfigError, OutfoxError, did_you_mean
from outfox.core.extras import install_hint
from outfox.core.types import JSON

FAMILIES: Mapping[str, str] = {
    "world": "worlds",
    "environment": "worlds/environments",
    "retriever": "worlds/retrieval",
    "tasks": "worlds/tasks",
    "format": "worlds/tasks/formats",
    "tool": "worlds/tools",
    "codec": "policies/codecs",
    "engine": "policies/engines",
    "signal": "rewards/signals",
    "adapter": "rewards/adapters",
    "credit": "learning/credit",
    "loss": "learning/losses",
    "trainer": "learning/trainers",
    "tracker": "store/trackers",
}
"""Family of interchangeable parts to its folder in the package."""

_PACKAGE = Path(__file__).parents[1]

Factory = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A part that was found and whose settings hold."""

    factory: Factory
    settings: Mapping[str, Any]
    """All keyword-only parameters, defaults included, as the factory takes them."""
    data: Mapping[str, JSON]
    """The part as the run folder records it: `type` and every setting written out."""


def _no_files() -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Finds parts for one run, and remembers which of the user's files were loaded."""

    allow_user_code: bool = True
    """False refuses `module:attr` and `path.py:attr`."""
    folders: tuple[Path, ...] = ()
    """Where a relative `path.py` is looked for, before the current folder."""
    files: dict[str, str] = field(default_factory=_no_files)
    """User files loaded so far: absolute path to SHA-256, for the run folder."""

    def make(self, family: str, part: Part, *supplied: Any, where: str = "") -> Any:
        """The part's object: its factory called with `supplied` and the settings."""
        found = self.resolve(family, part, where=where)
        return found.factory(*supplied, **found.settings)

    def resolve(self, family: str, part: Part, *, where: str = "") -> Resolved:
        """The factory and the validated settings; `where` (default: the family) names the key.

        Raises ConfigError: unknown name, refused user code, missing extra, wrong settings.
        """
        where = where or family
        factory = self.load(family, part.type, where=where)
        values = validate(settings_type(factory), dict(part.settings), where=where)
        data = {"type": part.type, **to_data(values)}
        settings = cast("dict[str, Any]", vars(values))
        return Resolved(factory=factory, settings=settings, data=data)

    def alone(self, family: str, part: Part, *, where: str = "") -> Callable[[], Any]:
        """A factory of a part that is given its settings and nothing else.

        Raises ConfigError where it needs more.
        """
        resolved = self.resolve(family, part, where=where)
        factory = partial(resolved.factory, **resolved.settings)
        try:
            inspect.signature(factory).bind()
        except TypeError as error:
            raise ConfigError(
                f"{where}: a recipe gives a {family} its settings and nothing else; '{part.type}': "
                f"{error}; leave it out, or write your own"
            ) from error
        return factory

    def load(self, family: str, name: str, *, where: str = "") -> Any:
        """The object behind a name: a built-in's `part`, or the user's attribute."""
        where = where or family
        if ":" in name:
            return self._load_user_code(name, where)
        known = built_ins(family)
        if name not in known:
            raise ConfigError(
                f"{where}: no {family} is called '{name}'.{did_you_mean(name, known)}"
                f" Your own is written module:attr or path.py:attr."
            )
        module = _import(known[name], f"{where}: {family} '{name}'")
        return vars(module)["part"]

    def _load_user_code(self, name: str, where: str) -> Any:
        if not self.allow_user_code:
            raise ConfigError(
                f"{where}: '{name}' is code of your own, which --no-user-code refuses; "
                "run without it, or name a built-in"
            )
        source, _, attribute = name.rpartition(":")
        if source.endswith(".py"):
            module = self._load_file(source, where)
        else:
            module = _import(source, f"{where}: '{name}'")
        if attribute not in vars(module):
            public = [each for each in vars(module) if not each.startswith("_")]
            raise ConfigError(
                f"{where}: {source} has no '{attribute}'.{did_you_mean(attribute, public)}"
            )
        return vars(module)[attribute]

    def _load_file(self, source: str, where: str) -> ModuleType:
        tried = [folder / Path(source).expanduser() for folder in (*self.folders, Path())]
        path = next((each.resolve() for each in tried if each.is_file()), None)
        if path is None:
            places = ", ".join(dict.fromkeys(str(each.parent.resolve()) for each in tried))
            raise ConfigError(f"{where}: no file '{source}' in {places}; check the path")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        self.files[str(path)] = digest
        key = hashlib.sha256(f"{path}\0{digest}".encode()).hexdigest()[:12]
        name = f"outfox_user_{key}_{path.stem}"
        return sys.modules[name] if name in sys.modules else _execute(name, path, where)


def built_ins(family: str) -> dict[str, str]:
    """The family's part names to their modules, found without importing any of them."""
    if family not in FAMILIES:
        raise ConfigError(
            f"no family of parts is called '{family}'.{did_you_mean(family, FAMILIES)}"
        )
    folder = _PACKAGE / FAMILIES[family]
    package = "outfox." + FAMILIES[family].replace("/", ".")
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules([str(folder)]):
        file = (
            folder / module.name / "__init__.py" if module.ispkg else folder / f"{module.name}.py"
        )
        if _binds_part(file):
            found[module.name.replace("_", "-")] = f"{package}.{module.name}"
    return found


@lru_cache(maxsize=256)
def settings_type(factory: Factory) -> type[Any]:
    """A frozen dataclass of the factory's keyword-only parameters.

    Raises ConfigError where a parameter has no annotation or the object cannot be called.
    """
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError) as error:
        raise ConfigError(f"a part is a class or function, not {factory!r}") from error
    own = [each for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
    hints = _hints(factory, own)
    fields = [(each.name, hints[each.name], _default(factory, each)) for each in own]
    return dataclasses.make_dataclass("settings", fields, frozen=True, kw_only=True)


def refuse_own(recipe: JSON) -> None:
    """Raises ConfigError that names all code of the user's own in a recipe, as plain data."""
    names = dict.fromkeys(_own(recipe))
    if names:
        raise ConfigError(
            f"{', '.join(names)}: code of your own, which --no-user-code refuses; run without it, "
            "or name built-ins"
        )


# -- helpers --------------------------------------------------------------------------------------
def _import(module: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        if module == missing or module.startswith(missing + "."):
            raise ConfigError(f"{what}: no module '{missing}' on the Python path") from error
        hint = install_hint(missing.partition(".")[0])
        raise ConfigError(f"{what} needs '{missing}'; {hint}") from error
    except OutfoxError:
        raise
    except Exception as error:
        raise ConfigError(f"{what} cannot be imported: {_told(error)}") from error


def _execute(name: str, path: Path, where: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        if isinstance(error, OutfoxError):
            raise
        raise ConfigError(f"{where}: {path} cannot be loaded: {_told(error)}") from error
    return module


def _own(found: JSON) -> Iterator[str]:
    """Values of `type` that are no built-in's name, and other values that name a file's part."""
    match found:
        case {"type": str(name), **settings} if ":" in name:
            yield name
            yield from _own(settings)
        case dict():
            for each in cast("dict[str, JSON]", found).values():
                yield from _own(each)
        case list():
            for each in cast("list[JSON]", found):
                yield from _own(each)
        case str() if ".py:" in found:
            yield found
        case _:
            pass


def _told(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    return f"{type(error).__name__}: {error}"


@lru_cache(maxsize=256)
def _binds_part(file: Path) -> bool:
    """Does the module bind `part` at its top level?"""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="part")])
                | ast.AnnAssign(target=ast.Name(id="part"))
            ):
                return True
            case ast.FunctionDef(name="part") | ast.ClassDef(name="part"):
                return True
            case ast.ImportFrom(names=names) if any((a.asname or a.name) == "part" for a in names):
                return True
            case _:
                pass
    return False


def _hints(factory: Factory, own: list[inspect.Parameter]) -> dict[str, Any]:
    """Evaluated annotations of the settings alone: the others may be typing-only imports."""
    written = {each.name: each.annotation for each in own}
    for name, annotation in written.items():
        if annotation is inspect.Parameter.empty:
            raise ConfigError(
                f"setting '{name}' of {factory!r} needs a type annotation, "
                f"for example `{name}: float = 1.0`"
            )
    module = sys.modules[inspect.unwrap(factory).__module__]
    holder: Any = SimpleNamespace(__annotations__=written)
    try:
        return typing.get_type_hints(holder, globalns=vars(module), include_extras=True)
    except NameError as error:
        raise ConfigError(
            f"annotations of {factory!r} must be readable at run time: {error}; "
            "import the name outside TYPE_CHECKING"
        ) from error


def _default(factory: Factory, parameter: inspect.Parameter) -> Any:
    """The parameter's default as a dataclass field."""
    if parameter.default is inspect.Parameter.empty:
        return field()
    if dataclasses.is_dataclass(factory):
        for each in dataclasses.fields(factory):
            if each.name == parameter.name and callable(each.default_factory):
                return field(default_factory=each.default_factory)
    default = parameter.default
    if default.__class__.__hash__ is None:  # a list or dict, which a dataclass refuses
        return field(default_factory=lambda: copy(default))
    return field(default=default)
