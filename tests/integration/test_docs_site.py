"""The documentation site without building it: its pages, its generated tables, its notes."""

import re
import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import outfox
from outfox.core.parts import FAMILIES
from outfox.core.yaml import load_yaml

ROOT = Path(__file__).parents[2]
CONFIG = load_yaml(ROOT / "mkdocs.yml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FRAGMENTS = sorted((ROOT / "changes").glob("[a-z]*.md"))


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return import_module(name)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return script("build_docs", monkeypatch)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository of three pages."""
    files = {
        "README.md": "# Readme",
        "CHANGELOG.md": "# Changes\n\n<!-- changes -->\n",
        "docs/index.md": "# Why\n\n[中文](index.zh.md)\n\nSee [changes](../CHANGELOG.md), "
        "[part](parts/tool.md#a-check), [source](../src/loop.py), [home](https://a.b).\n",
        "docs/index.zh.md": "# 为什么\n\n[English](index.md)\n\n见[部件](parts/tool.md)。\n",
        "docs/parts/tool.md": "# Tool\n\n## A check\n\n[why](../index.md)\n\n"
        "```python\nx = y[0](z)\n```\n",
        "docs/parts/tool.zh.md": "# 工具\n\n## 检查\n\n[为什么](../index.zh.md)\n",
        "src/loop.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def nav(*pages: str) -> dict:
    return {"nav": ["index.md", {"Parts": ["parts/tool.md"]}, "changelog.md", *pages]}


def test_every_page_is_in_nav_and_no_link_is_dead(site: ModuleType):
    site.check_nav(ROOT, CONFIG)
    for name in site.pages(ROOT):
        for language in ("en", "zh"):
            assert site.staged(ROOT, name, language, "notice").startswith("# ")
    site.configured(CONFIG, "zh", ROOT)


def test_links_are_those_of_the_site(site: ModuleType, small: Path):
    site.check_nav(small, nav())
    assert site.staged(small, "index.md", "en", "") == (
        "# Why\n\nSee [changes](changelog.md), [part](parts/tool.md#a-check), source, "
        "[home](https://a.b).\n"
    )
    assert (
        site.staged(small, "index.md", "zh", "") == "# 为什么 {#why}\n\n见[部件](parts/tool.md)。\n"
    )
    chinese = site.staged(small, "parts/tool.md", "zh", "")
    assert "## 检查 {#a-check}" in chinese
    assert "[为什么](../index.md)" in chinese
    assert "x = y[0](z)" in site.staged(small, "parts/tool.md", "en", "")
    assert "- **New**" in site.staged(small, "changelog.md", "en", "", "- **New**")
    assert "    英文" in site.staged(small, "changelog.md", "zh", "英文")


@pytest.mark.parametrize(
    ("page", "text", "told"),
    [
        ("docs/left-out.md", "# Left out", "left-out.md is not in nav: add a line"),
        ("docs/lost.zh.md", "# 丢了", "lost.zh.md has no English page"),
    ],
)
def test_a_page_that_nobody_finds_is_refused(
    site: ModuleType, small: Path, page: str, text: str, told: str
):
    (small / page).write_text(text, encoding="utf-8")
    with pytest.raises(site.DocsError, match=told):
        site.check_nav(small, nav())


def test_what_is_not_there_is_refused(site: ModuleType, small: Path):
    with pytest.raises(site.DocsError, match=r"nav names gone\.md"):
        site.check_nav(small, nav("gone.md"))
    (small / "docs/index.md").write_text("# Why\n\n[gone](gone.md)\n")
    with pytest.raises(site.DocsError, match=r"docs/index\.md links to gone\.md"):
        site.staged(small, "index.md", "en", "")


def test_nothing_is_fetched_from_elsewhere():
    assert CONFIG["theme"]["font"] is False
    assert "://" not in (ROOT / "mkdocs.yml").read_text()


def test_generated_tables_are_up_to_date(monkeypatch: pytest.MonkeyPatch):
    reference = script("fill_reference", monkeypatch)
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert reference.filled(text) == text, f"{page.name}: python scripts/fill_reference.py"


def test_every_part_with_settings_has_its_table():
    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    # Made by a world, or a rubric; trackers.md has those of trackers, which need their packages.
    inside = {"environment", "retriever", "tasks", "signal", "tracker"}
    for family in FAMILIES.keys() - inside:
        assert f"<!-- settings {family} -->" in text, family


def test_the_reference_has_every_public_name():
    text = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    for name in outfox.__all__:
        public = getattr(outfox, name)
        shown = f"::: {public.__module__}.{public.__qualname__.partition('.')[0]}\n"
        assert shown in text, name


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=lambda path: path.name)
def test_a_change_is_told_in_one_paragraph(fragment: Path):
    kinds = {each["directory"] for each in PROJECT["tool"]["towncrier"]["type"]}
    _, kind, _ = fragment.name.split(".")
    assert kind in kinds
    text = fragment.read_text(encoding="utf-8").strip()
    assert re.match(r"\*\*[^*]+\*\*", text), "a name in bold comes first"
    assert "\n" not in text
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        assert (ROOT / link).exists(), link


def test_the_citation_says_what_the_package_says():
    citation, project = load_yaml(ROOT / "CITATION.cff"), PROJECT["project"]
    assert citation.keys() >= {"cff-version", "message", "title", "authors"}
    assert citation["title"].lower() == project["name"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert citation["abstract"] == project["description"]
    assert citation["keywords"] == project["keywords"]
