"""The pages on parts: their examples run, their recipes hold, every protocol has a page."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from outfox.build import assemble
from outfox.core import protocols
from outfox.core.config import load_recipe

ROOT = Path(__file__).parents[2]
PARTS = ROOT / "docs" / "parts"
PAGES = sorted(page for page in PARTS.glob("*.md") if not page.name.startswith("index"))
_FENCE = re.compile(
    r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)
SMALL = ["eval.questions=9", "world.entities={countries: 30, cities: 60}"]


def blocks(page: Path) -> list[re.Match[str]]:
    return list(_FENCE.finditer(page.read_text(encoding="utf-8")))


@pytest.fixture
def folder(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the page shows, in a folder that is the current one."""
    for block in blocks(page):
        if block["title"]:
            (tmp_path / block["title"]).write_text(block["text"], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_example_of_a_page_keeps_its_contract(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    shown = [b["text"] for b in blocks(page) if b["kind"] == "python" and not b["title"]]
    assert any("check_" in text for text in shown), "a page ends with its check"
    (folder / "page.py").write_text("\n".join(shown), encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    for module in folder.glob("*.py"):
        monkeypatch.delitem(sys.modules, module.stem, raising=False)
    runpy.run_path("page.py")


@pytest.mark.parametrize(
    "page", [p for p in PAGES if "```yaml title" in p.read_text()], ids=lambda page: page.stem
)
def test_the_recipe_of_a_page_can_be_put_together(page: Path, folder: Path):
    for recipe in folder.glob("*.yaml"):
        text = recipe.read_text(encoding="utf-8")
        small = SMALL[:1] if "world" in text else SMALL
        assemble(load_recipe(str(recipe), small))


def test_every_protocol_has_a_page():
    told = "\n".join(page.read_text(encoding="utf-8") for page in PAGES).lower()
    for name, each in vars(protocols).items():
        if getattr(each, "_is_protocol", False) and name not in ("Protocol", "EnvironmentFactory"):
            words = re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()
            assert words in told, name
            methods = [m for m in vars(each) if not m.startswith("_")]
            assert all(re.search(rf"\b{method}\b", told) for method in methods), (name, methods)
    for index in ("index.md", "index.zh.md"):
        text = (PARTS / index).read_text(encoding="utf-8")
        assert all(f"({page.name})" in text for page in PAGES)
