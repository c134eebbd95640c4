"""Who may import what, beyond the layers that import-linter checks (pyproject.toml)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from outfox.core.extras import extras

SOURCE = Path(__file__).parents[2] / "src" / "outfox"
FILES = sorted(SOURCE.rglob("*.py"))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

HOMES = {
    "torch": (
        "policies/",
        "learning/",
        "bridges/",
        "rewards/reward_model.py",
        "worlds/retrieval/dense.py",
    ),
    "transformers": ("policies/", "learning/trainers/"),
    "vllm": ("policies/engines/vllm.py",),
    "verl": ("bridges/verl",),
    "ray": ("bridges/verl",),
    "trl": ("bridges/trl",),
    "tensorboard": ("store/trackers/tensorboard.py",),
    "wandb": ("store/trackers/wandb.py",),
    "trackio": ("store/trackers/trackio.py",),
    "mlflow": ("store/trackers/mlflow.py",),
}
"""Heavy package to the only places that may import it."""


def imported(tree: ast.AST) -> Iterator[str]:
    """Top-level package of every import statement."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("heavy", HOMES)
def test_heavy_packages_stay_in_their_rooms(heavy: str):
    strays = []
    for path in FILES:
        place = path.relative_to(SOURCE).as_posix()
        at_home = place.startswith(HOMES[heavy]) and not place.startswith("learning/credit/")
        if not at_home and heavy in imported(ast.parse(path.read_text())):
            strays.append(place)
    assert strays == []


def needs_an_extra(module: str) -> bool:
    """Is this an optional package, or a module of ours that stands on one?"""
    own = SOURCE.parent / (module.replace(".", "/") + ".py")
    packages = imported(ast.parse(own.read_text())) if own.is_file() else [module.partition(".")[0]]
    return any(name in package for name in packages for package in extras().values())


def test_imports_stand_at_the_top_of_the_file_unless_they_need_an_extra():
    hidden = []
    for path in FILES:
        tree = ast.parse(path.read_text())
        functions = [n for n in ast.walk(tree) if isinstance(n, FUNCTIONS)]
        for node in (inner for function in functions for inner in ast.walk(function)):
            match node:
                case ast.Import(names=names):
                    modules = [alias.name for alias in names]
                case ast.ImportFrom(module=str(module)):
                    modules = [module]
                case _:
                    modules = []
            hidden += [f"{path.name}: {name}" for name in modules if not needs_an_extra(name)]
    assert hidden == []


def test_attributes_are_not_probed():
    """`hasattr(x, "y")` and `getattr(x, "y", default)` guess at what an object is."""
    probed = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case (
                    ast.Call(func=ast.Name(id="hasattr"))
                    | ast.Call(func=ast.Name(id="getattr"), args=[_, _, _])
                ):
                    probed.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
                case _:
                    pass
    assert probed == []


def test_no_module_imports_itself_by_a_detour():
    graph = grimp.build_graph("outfox", exclude_type_checking_imports=True, cache_dir=None)
    left = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(left) > 50
    while free := {module for module, needs in left.items() if not needs & left.keys()}:
        left = {module: needs for module, needs in left.items() if module not in free}
    assert sorted(left) == []  # what remains waits for itself
