"""What README and docs promise: commands, files, queries, keys and links. Nothing is trained;
`test_documented_runs.py` does that.

Fenced blocks with a title (`yaml title="mine.yaml"`) are written out for the page's commands.
"""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import duckdb
import pytest

from outfox.cli import VERBS, command, main
from outfox.cli.train import split_words
from outfox.core.comparison import load_comparison
from outfox.core.config import Part, RecipeFile, load_recipe, load_yaml, validate
from outfox.core.parts import Parts
from outfox.core.recipe import Recipe
from outfox.evaluation.behaviour import SHOWN
from outfox.evaluation.contrast import check_asks
from outfox.evaluation.metrics import Measures
from outfox.evaluation.summary import NOT_YET
from outfox.learning.algorithms import algorithm
from outfox.rewards.score import make_rubric
from outfox.rewards.signals import SIGNALS
from outfox.rewards.solvability import WorldSolvability
from outfox.rewards.tree import preset_names
from outfox.store.run_folder import RunFolder
from outfox.store.shards import SCORE_SCHEMA, TRAJECTORY_SCHEMA
from outfox.testing.run import made_up_run

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
_FENCE = re.compile(
    r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\]\(([^)#\s]+)")
_EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
_TARGETS = frozenset(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, kind: str) -> list[re.Match[str]]:
    return [m for m in _FENCE.finditer(page.read_text(encoding="utf-8")) if m["kind"] == kind]


def commands(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "bash") for line in block["text"].splitlines()]
    return [line for line in lines if line.strip()]


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the page shows; the current one meanwhile."""
    page: Path = request.getfixturevalue("page")
    for block in _FENCE.finditer(page.read_text(encoding="utf-8")):
        if block["title"]:
            (tmp_path / block["title"]).write_text(block["text"], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=name_of)
def test_the_commands_of_a_page_hold(page: Path, desk: Path):
    for line in commands(page):
        check(line)


def check(line: str) -> None:
    words = shlex.split(line.partition(" > ")[0])
    match words:
        case ["outfox", verb, *arguments]:
            assert verb in VERBS, line
            check_verb(verb, arguments)
        case ["make", target, *settings]:
            assert target in _TARGETS, line
            for setting in settings:
                name, _, value = setting.partition("=")
                assert name == "ARGS", line
                check_verb("train", shlex.split(value))
        case [".", ".venv/bin/activate"] | ["python", "-m", "webbrowser", _]:
            pass
        case ["python", "-m", "http.server", "--directory", _]:
            pass
        case ["tensorboard" | "wandb", *_]:
            pass
        case ["pip", "install", extra]:
            assert extra.removeprefix("outfox[").removesuffix("]") in _EXTRAS, line
        case ["pytest", "-q", place]:
            assert (ROOT / place).exists(), line
        case _:
            raise AssertionError(f"a documented command that nothing checks: {line}")


def check_verb(verb: str, arguments: list[str]) -> None:
    """Options as the verb parses them; settings as the recipe takes them.

    What trains nothing is run: later lines of a page use what it wrote.
    """
    if verb in ("data", "init"):
        with pytest.raises(SystemExit) as ended:
            main([verb, *arguments])
        assert not ended.value.code, arguments
        return
    context = command().commands[verb].make_context(verb, list(arguments))
    if verb != "train" or context.params["resume"] is not None:
        return
    recipe, overrides = split_words(context.params["words"] or [])
    comparison = load_comparison(recipe, overrides)
    if comparison is None:
        check_recipe(load_recipe(recipe, overrides))
        return
    check_asks(comparison.comparison.asks)
    for seed, variant in comparison.runs:
        check_recipe(comparison.recipe(variant, seed))


def check_recipe(file: RecipeFile) -> None:
    made = validate(Recipe, {"name": file.name, **file.data})
    parts = Parts(folders=file.folders)
    make_rubric(made.rubric, parts, WorldSolvability())
    for family in ("world", "codec", "engine", "trainer"):
        parts.resolve(family, getattr(made, family))
    chosen = algorithm(made.algorithm, parts)
    parts.resolve("credit", chosen.credit)
    parts.resolve("loss", chosen.loss)
    for tool in made.tools:
        parts.load("tool", tool.type)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "sql")], ids=name_of)
def test_the_queries_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = made_up_run(tmp_path / "run", steps=3, questions=12)
    stored = run.evaluation("before")
    credits = [
        [stored.credits[t.group_id, t.sibling] for t in group.group.trajectories]
        for group in stored.groups
    ]
    run.add_groups(0, stored.groups, rubric="0123456789abcdef", credits=credits)
    monkeypatch.chdir(run.path)
    for block in blocks(page, "sql"):
        assert duckdb.sql(block["text"].strip().rstrip(";")).columns


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_links_to_what_is_there(page: Path):
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        assert link.startswith("http") or (page.parent / link).exists(), link


def test_every_page_is_on_the_index():
    for index, suffix in (("index.md", ""), ("index.zh.md", ".zh")):
        text = (ROOT / "docs" / index).read_text(encoding="utf-8")
        for page in (ROOT / "docs").glob("*.md"):
            if page.stem.endswith(".zh") == bool(suffix) and not page.stem.startswith("index"):
                assert f"({page.name})" in text, page.name


def rows(page: str, heading: str) -> dict[str, tuple[str, ...]]:
    """The table below a heading, by the names in its first cells."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    found: dict[str, tuple[str, ...]] = {}
    for line in re.split(r"^##", text, maxsplit=1, flags=re.MULTILINE)[0].splitlines():
        cells = line.split(" | ")
        if line.startswith("|"):
            for name in re.findall(r"`([^`]+)`", cells[0]):
                found[name] = tuple(cell.strip(" |`") for cell in cells[1:])
    return found


def settings(cls: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted key and default of every setting; MISSING where it is required."""
    hints = get_type_hints(cls)
    for field in fields(cls):
        hint = hints[field.name]
        inner = [each for each in (hint, *get_args(hint)) if is_dataclass(each) and each != Part]
        if inner:
            yield from settings(inner[0], f"{where}{field.name}.")
        if inner == [hint]:
            continue
        if field.default is MISSING and field.default_factory is MISSING:
            yield f"{where}{field.name}", MISSING
        else:
            made = field.default if field.default_factory is MISSING else field.default_factory()
            yield f"{where}{field.name}", plain(made)


def plain(value: Any) -> Any:
    match value:
        case Part():
            return value.type
        case tuple():
            return list(value)
        case Mapping():
            return dict(value)
        case _:
            return value


def test_every_key_of_a_recipe_is_documented_with_its_default():
    written = rows("configuration.md", "## Every key")
    expected = dict(settings(Recipe))
    assert written.keys() == expected.keys()
    for key, default in expected.items():
        said = written[key][0]
        assert said == "required" if default is MISSING else load_yaml(said) == default, key


def test_every_signal_and_preset_is_documented():
    assert rows("rewards.md", "## The signals").keys() >= SIGNALS.keys()
    for name, signal in SIGNALS.items():
        assert rows("rewards.md", "## The signals")[name][0] == signal.family
    assert {*rows("rewards.md", "## Presets"), "default"} >= set(preset_names())


def test_every_key_of_a_summary_is_documented():
    written = rows("run-folder.md", "## summary.json").keys()
    flat = {f.name for f in fields(Measures)} - {"questions", "episodes", "failed"}
    assert {*flat, *NOT_YET, "intervals", "n"} <= written


def test_every_metric_and_column_is_documented(tmp_path: Path):
    run = made_up_run(tmp_path / "run", steps=2, questions=8)
    written = rows("run-folder.md", "## metrics.jsonl").keys()
    short = {name.removeprefix("behaviour/") for name in written}
    assert set(SHOWN) <= short
    for name in {key for row in run.metrics() for key in row} - {"step", "stage"}:
        family = re.sub(r"^(stop|entropy)/.*", r"\1/", name)
        family = re.sub(r"^(rewards|parts)/.*/mean", r"\1/", family)
        plain_name = name.removeprefix("behaviour/")
        assert plain_name in short or any(each.startswith(family) for each in written), name
    keys = {"step", "group_id", "sibling"}
    assert set(TRAJECTORY_SCHEMA.names) - keys <= rows("run-folder.md", "## Trajectories").keys()
    assert set(SCORE_SCHEMA.names) - keys <= rows("run-folder.md", "## Scores").keys()
    assert RunFolder.open(run.path).about.keys() <= rows("run-folder.md", "## run.yaml").keys()


def test_both_readmes_show_the_same_commands():
    english, chinese = (commands(ROOT / name) for name in ("README.md", "README.zh.md"))
    assert english == chinese
    assert english[:2] == ["make train", "make test"]
