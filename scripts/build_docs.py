"""The documentation site: `python scripts/build_docs.py` builds it into build/docs/site, strictly.

    docs/X.md, docs/X.zh.md ─┬─▶ build/docs/en/X.md ─Zensical─▶ site/X/
    CONTRIBUTING.md ...      └─▶ build/docs/zh/X.md ─Zensical─▶ site/zh/X/

Sources are written for a reader of the repository: a Chinese page lies beside the English one and
links to it, and links lead to source files. The site has a switch of language instead, and no
source files, so links are rewritten on the way; a page without a Chinese version is shown in
English, with a notice. A page that `nav` leaves out, a file that is not there and whatever
Zensical warns of is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from outfox.core.yaml import dump_yaml, load_yaml

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "docs"
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<to>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")
_LANGUAGE_LINE = re.compile(r"^\[(?:中文|English)\]\([^)]*\)\n\n?", re.MULTILINE)
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
_LANGUAGES = {"en": "English", "zh": "中文"}


class DocsError(Exception):
    """A page that cannot be built, and why."""


# -- pages ----------------------------------------------------------------------------------------
def pages(root: Path) -> dict[str, Path]:
    """Name of each page in the site to its English source: docs, and what stands beside README."""
    docs = root / "docs"
    found = {
        path.relative_to(docs).as_posix(): path
        for path in sorted(docs.rglob("*.md"))
        if not path.name.endswith(".zh.md")
    }
    beside = {path.name.lower(): path for path in sorted(root.glob("[A-Z]*.md"))}
    return found | {name: path for name, path in beside.items() if not name.startswith("readme")}


def listed(nav: Any) -> Iterator[str]:
    """Names of pages in `nav`, in order."""
    for each in nav:
        if isinstance(each, str):
            yield each
        else:
            for below in each.values():
                yield from listed(below if isinstance(below, list) else [below])


def check_nav(root: Path, config: Mapping[str, Any]) -> None:
    """Raises DocsError where `nav` and the pages differ, or a Chinese page has no English one."""
    there, named = set(pages(root)), list(listed(config["nav"]))
    for name in sorted(there - set(named)):
        raise DocsError(f"the page {name} is not in nav: add a line `- {name}` to mkdocs.yml")
    for name in named:
        if name not in there or named.count(name) > 1:
            raise DocsError(f"nav names {name}, which is no page, or comes twice: see mkdocs.yml")
    for chinese in (root / "docs").rglob("*.zh.md"):
        if not chinese.with_name(chinese.name.replace(".zh.md", ".md")).exists():
            raise DocsError(f"{chinese.name} has no English page beside it")


def staged(root: Path, name: str, language: str, notice: str, upcoming: str = "") -> str:
    """A page's text as the site has it; `upcoming` is what the changelog does not have yet."""
    source = english_source = pages(root)[name]
    chinese = source.with_name(source.name.replace(".md", ".zh.md"))
    translated = language == "zh" and chinese.exists()
    if translated:
        source = chinese
    text = _LANGUAGE_LINE.sub("", source.read_text(encoding="utf-8"), count=1)
    text = text.replace("<!-- changes -->", upcoming)
    if translated:
        text = _with_anchors_of(english_source.read_text(encoding="utf-8"), text)
    if language == "zh" and not translated:
        heading, _, rest = text.partition("\n")
        text = f'{heading}\n\n!!! note ""\n    {notice}\n{rest}'
    targets = {path.resolve(): page for page, path in pages(root).items()}

    def moved(link: re.Match[str]) -> str:
        to, anchor = link["to"], link["anchor"] or ""
        if not to or to.startswith(("http:", "https:", "mailto:")):
            return link[0]
        path = (source.parent / to).resolve()
        if not path.exists():
            raise DocsError(f"{source.relative_to(root)} links to {to}, which is not there")
        english = path.with_name(path.name.replace(".zh.md", ".md"))
        if english not in targets:
            return link["text"]  # a source file
        place = os.path.relpath(targets[english], Path(name).parent).replace(os.sep, "/")
        return f"[{link['text']}]({place}{anchor})"

    return _outside_code(_LINK, moved, text)


def _with_anchors_of(english: str, chinese: str) -> str:
    """The Chinese page with the English headings' anchors, where it has the same headings."""
    anchors = [_slug(heading[2]) for heading in _HEADING.finditer(_CODE.sub("", english))]
    if len(anchors) != len(_HEADING.findall(_CODE.sub("", chinese))):
        return chinese
    left = iter(anchors)
    return _outside_code(_HEADING, lambda found: f"{found[0]} {{#{next(left)}}}", chinese)


def _slug(heading: str) -> str:
    """As Python-Markdown makes an anchor of a heading."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def _outside_code(pattern: re.Pattern[str], put: Callable[[re.Match[str]], str], text: str) -> str:
    """`text` with what `pattern` finds outside of fenced blocks replaced."""
    done, start = "", 0
    for block in _CODE.finditer(text):
        done += pattern.sub(put, text[start : block.start()]) + block[0]
        start = block.end()
    return done + pattern.sub(put, text[start:])


# -- configuration --------------------------------------------------------------------------------
def configured(config: Mapping[str, Any], language: str, root: Path) -> dict[str, Any]:
    """The site's configuration for one language."""
    made = dict(config)
    words: Mapping[str, str] = config["extra"]["chinese"]
    switch = {"en": {"en": "", "zh": "zh/"}, "zh": {"en": "../", "zh": ""}}[language]
    made["docs_dir"] = language
    made["site_dir"] = "site" if language == "en" else "site/zh"
    made["theme"] = {
        **config["theme"],
        "language": language,
        "custom_dir": str(root / "scripts" / "theme"),
    }
    made["extra"] = {key: value for key, value in config["extra"].items() if key != "chinese"} | {
        "alternate": [
            {"name": name, "lang": lang, "link": switch[lang]} for lang, name in _LANGUAGES.items()
        ]
    }
    if language == "zh":
        made["nav"] = _translated(config["nav"], words)
    for plugin in made["plugins"]:
        if isinstance(plugin, dict) and "mkdocstrings" in plugin:
            plugin["mkdocstrings"]["handlers"]["python"]["paths"] = [str(root / "src")]
    return made


def _translated(nav: Any, words: Mapping[str, str]) -> list[Any]:
    sections: list[Any] = []
    for each in nav:
        if isinstance(each, dict):
            for title in each:
                if title not in words:
                    raise DocsError(f"nav's section '{title}' has no Chinese name: extra.chinese")
            sections.append({words[title]: below for title, below in each.items()})
        else:
            sections.append(each)
    return sections


# -- the build ------------------------------------------------------------------------------------
def build(root: Path = ROOT, out: Path = OUT) -> Path:
    """Both languages; returns the folder of the site. Raises DocsError."""
    config: dict[str, Any] = load_yaml(root / "mkdocs.yml")
    check_nav(root, config)
    notice = config["extra"]["chinese"]["untranslated"]
    upcoming = _run(root, "towncrier", "build", "--draft", "--version", "Unreleased")
    upcoming = re.sub(r"^## Unreleased.*", "## Unreleased", upcoming)
    shutil.rmtree(out, ignore_errors=True)
    for language in _LANGUAGES:
        for name in pages(root):
            target = out / language / name
            target.parent.mkdir(parents=True, exist_ok=True)
            text = staged(root, name, language, notice, upcoming)
            target.write_text(text, encoding="utf-8")
        file = out / f"{language}.yml"
        file.write_text(dump_yaml(configured(config, language, root)), encoding="utf-8")
        _run(root, "zensical", "build", "--strict", "-f", str(file))
    return out / "site"


def _run(root: Path, module: str, *arguments: str) -> str:
    """What a tool prints. Raises DocsError with what it complains of."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        told = _COLOUR.sub("", done.stdout + done.stderr).partition("Traceback")[0].strip()
        raise DocsError(f"{' '.join([module, *arguments])}\n{told}")
    return done.stdout


if __name__ == "__main__":
    try:
        sys.stderr.write(f"docs: {build().relative_to(ROOT)}/index.html\n")
    except DocsError as error:
        sys.exit(f"docs: {error}")
