"""What README and docs promise: commands, files, queries, keys and links.

Fenced blocks with a title (`yaml title="mine.yaml"`) are written out for the page's commands. These
are checked as they stand, then run in the page's order, with trainings of seconds
(`OUTFOX_DOC_TEST=1`). What is not run stands in NOT_RUN, with the reason.
"""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import duckdb
import pytest

from outfox.cli import VERBS, command, main
from outfox.cli.train import split_words
from outfox.core.brief import VARIABLE
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
_TARGETS = frozenset(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, kind: str) -> list[re.Match[str]]:
    return [m for m in _FENCE.finditer(page.read_text(encoding="utf-8")) if m["kind"] == kind]


def commands(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "bash") for line in block["text"].splitlines()]
    return [line for line in lines if line.strip()]


NOT_RUN = {
    "make test": "it is this suite",
    "make test-trackers": "it makes an environment of its own",
    ". .venv/bin/activate": "it is the environment of this suite",
    "pytest -q tests/unit/rewards": "it is a part of this suite",
    "pip install 'outfox[tensorboard]'": "it changes the environment",
    'outfox train when-to-search "trackers=[tensorboard]"': "make test-trackers does so",
    "outfox train watched.yaml": "make test-trackers does so",
    "tensorboard --logdir runs": "it is a server of another package",
    "wandb sync runs/watched-001/wandb/offline-run-*": "it sends to a service",
}
"""Line to the reason why no test runs it."""
_CHECKPOINT = re.compile(r"(runs/[^/\s]+/checkpoints)/step-\d+")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def done() -> set[str]:
    """Trainings that ran already, on any page, with what they read."""
    return set()


@pytest.fixture
def desk(
    request: pytest.FixtureRequest, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder with the files that the page shows; the current one meanwhile."""
    page: Path = request.getfixturevalue("page")
    for block in _FENCE.finditer(page.read_text(encoding="utf-8")):
        if block["title"]:
            (tmp_path / block["title"]).write_text(block["text"], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return tmp_path


def translated(page: Path) -> bool:
    return page.stem.endswith(".zh")


@pytest.mark.parametrize(
    "page", [p for p in PAGES if commands(p) and not translated(p)], ids=name_of
)
def test_the_commands_of_a_page_run(
    page: Path,
    desk: Path,
    done: set[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    lines = commands(page)
    for number, line in enumerate(lines):
        check(line)
        key = line + "".join(
            file.read_text() for file in desk.iterdir() if file.is_file() and file.name in line
        )
        used_later = any("runs/" in later for later in lines[number:])
        if line in NOT_RUN or (key in done and not used_later):
            continue
        with monkeypatch.context() as environment:
            environment.setenv(VARIABLE, "1")
            run(line)
        out = capsys.readouterr().out
        if " > " in line:
            Path(line.partition(" > ")[2]).write_text(out, encoding="utf-8")
        done.add(key)


@pytest.mark.parametrize("page", [p for p in PAGES if translated(p)], ids=name_of)
def test_a_translated_page_shows_the_same_commands(page: Path):
    assert commands(page) == commands(page.with_name(page.name.replace(".zh.", ".")))


def test_all_that_is_not_run_is_documented():
    documented = {line for page in PAGES for line in commands(page)}
    assert NOT_RUN.keys() <= documented


def run(line: str) -> None:
    """As a user would, in this process. A finding of the doctor's is a result, too."""
    words = shlex.split(line.partition(" > ")[0])
    match words:
        case ["python", "-m", "webbrowser", shown]:
            assert Path(shown).is_file(), line
        case ["make", "train", *settings]:
            given = [word for each in settings for word in shlex.split(each.partition("=")[2])]
            assert outfox("train", *given) == 0, line
        case ["outfox", verb, *arguments]:
            stand_in(line)
            assert outfox(verb, *arguments) in ((0, 1) if verb == "doctor" else (0,)), line
        case _:
            raise AssertionError(
                f"a documented command that nothing runs, without a reason: {line}"
            )


def outfox(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0)


def stand_in(line: str) -> None:
    """A training of seconds takes fewer steps: its last checkpoint stands for the one named."""
    for named in _CHECKPOINT.finditer(line):
        last = sorted(Path(named[1]).iterdir())[-1]
        Path(named[0]).symlink_to(last.absolute())


def check(line: str) -> None:
    """Names, options, settings and files, as the line stands."""
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
        case ["pytest", "-q", place]:
            assert (ROOT / place).exists(), line
        case ["pip", "install", extra]:
            assert extra.removeprefix("outfox[").removesuffix("]") in EXTRAS, line
        case _:
            pass  # It is run, or stands in NOT_RUN.


def check_verb(verb: str, arguments: list[str]) -> None:
    """Options as the verb parses them; settings as the recipe takes them."""
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
        if is_dataclass(hints[field.name]) and hints[field.name] is not Part:
            yield from settings(hints[field.name], f"{where}{field.name}.")
        elif field.default is MISSING and field.default_factory is MISSING:
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


def test_the_readme_begins_with_the_two_commands():
    assert commands(ROOT / "README.md")[:2] == ["make train", "make test"]
