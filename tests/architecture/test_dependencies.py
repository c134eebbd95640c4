"""Every dependency is justified in docs/dependencies.md, and every core one is used."""

import ast
import tomllib
from pathlib import Path

import pytest

from outfox.core.extras import distribution

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = {
    "core": PROJECT["project"]["dependencies"],
    **EXTRAS,
    **PROJECT["dependency-groups"],
}
MODULES = {"ruamel-yaml": "ruamel"}


@pytest.mark.parametrize("group", GROUPS)
def test_each_dependency_is_justified(group: str):
    page = (ROOT / "docs" / "dependencies.md").read_text()
    names = [distribution(requirement) for requirement in GROUPS[group]]
    missing = [name for name in names if name.replace("-yaml", ".yaml") not in page]
    assert missing == []


@pytest.mark.parametrize("requirement", GROUPS["core"])
def test_each_core_dependency_is_imported(requirement: str):
    name = distribution(requirement)
    module = MODULES.get(name, name)
    imported = {
        (alias.name if isinstance(node, ast.Import) else str(node.module)).partition(".")[0]
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert module in imported
