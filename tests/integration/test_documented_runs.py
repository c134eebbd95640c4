"""Every documented command is run, page by page and in order, as a reader would.

Trainings take seconds (`OUTFOX_DOC_TEST=1`, declared in `core/brief.py`). Fenced blocks with a
title are the files that the commands read. What stands in for what no test has, and what is not
run, is said here.
"""

import gc
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from outfox.cli import main
from outfox.core.brief import VARIABLE

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(
    r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)
NOT_RUN: Mapping[str, str] = {
    "make test": "it is this suite, or makes an environment of its own",
    "make docs": "make test builds the pages, too",
    "python -m http.server": "it is a server",
    "OMP_NUM_THREADS=1 python benchmarks/": "it takes minutes and gigabytes",
    "outfox train search-qa": "make test-real runs it",
    "python scripts/gguf_to_hf.py": "make test-real runs it",
    "outfox train mine.yaml --no-user-code": "it is refused, which other tests see",
    "make install": "it makes an environment of its own",
    "pip install": "it changes the environment",
    ". .venv/bin/activate": "it is the environment of this suite",
    "pytest": "it is a part of this suite",
    ".venv-trl/bin/uv": "it needs another environment",
    ".venv/bin/python benchmarks/": "it needs another environment",
    'outfox train when-to-search "trackers=[tensorboard]"': "make test-trackers runs it",
    "outfox train watched.yaml": "make test-trackers runs it",
    "tensorboard": "it is a server of another package",
    "wandb sync": "it sends to a service",
}
"""How a line begins, and why nothing runs it."""
MODEL = "SmolLM2-135M-Instruct"
"""A folder that a reader has; a checkpoint of the shipped recipe stands for it."""
ROWS = 40
"""A file that shows one row stands for one of as many."""
_CHECKPOINT = re.compile(r"(runs/[^/\s]+/checkpoints)/step-\d+")


def commands(page: Path) -> list[str]:
    """Lines of shell blocks; in a `console` block those behind the prompt."""
    lines: list[str] = []
    for block in _FENCE.finditer(page.read_text(encoding="utf-8")):
        written = [line for line in block["text"].splitlines() if line.strip()]
        if block["kind"] in ("bash", "sh", "shell"):
            lines += written
        elif block["kind"] == "console":
            lines += [line.removeprefix("$ ") for line in written if line.startswith("$ ")]
    return lines


def translated(page: Path) -> bool:
    return page.stem.endswith(".zh")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def why_not(line: str) -> str | None:
    return next((why for begin, why in NOT_RUN.items() if line.startswith(begin)), None)


@pytest.fixture(scope="module")
def done() -> set[str]:
    """Commands that ran already, on any page, with what they read."""
    return set()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cold starts, and the model that stands in."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def desk(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, where trainings take seconds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv(VARIABLE, "1")
    monkeypatch.setattr(gc, "collect", lambda: 0)  # A run begins with one, as long as itself here.
    return tmp_path


@pytest.mark.parametrize(
    "page", [p for p in PAGES if commands(p) and not translated(p)], ids=name_of
)
def test_the_commands_of_a_page_run(
    page: Path, desk: Path, done: set[str], cache: Path, capsys: pytest.CaptureFixture[str]
):
    run_page(page, done, cache, capsys)


@pytest.mark.parametrize("page", [p for p in PAGES if translated(p)], ids=name_of)
def test_a_translated_page_shows_the_same_commands(page: Path):
    original = page.with_name(page.name.replace(".zh.", "."))
    assert commands(page) == commands(original)


def test_nothing_is_excused_in_vain():
    lines = {line for page in PAGES for line in commands(page)}
    for begin in NOT_RUN:
        assert any(line.startswith(begin) for line in lines), begin


# -- that these tests can fail --------------------------------------------------------------------
@pytest.mark.parametrize(
    "line",
    [
        "outfox data validate nowhere.jsonl",
        "outfox train when-to-search stepz=3",
        "outfox train when-to-search world.relations=0",
        "outfox trian when-to-search",
        "python -m webbrowser runs/nothing/report.html",
        "make tea",
    ],
)
def test_a_command_that_fails_is_found(
    line: str, desk: Path, cache: Path, capsys: pytest.CaptureFixture[str]
):
    page = desk / "page.md"
    page.write_text(f"```bash\noutfox data list\n{line}\n```\n")
    with pytest.raises(AssertionError, match=re.escape(line)):
        run_page(page, set(), cache, capsys)


def test_a_command_is_found_in_a_console(desk: Path):
    page = desk / "page.md"
    page.write_text("```console\n$ outfox doctor\npython ok\n```\n```text\noutfox no\n```\n")
    assert commands(page) == ["outfox doctor"]


# -- running --------------------------------------------------------------------------------------
def run_page(page: Path, done: set[str], cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command, unless it ran before and nothing later on the page needs its run folder."""
    for block in _FENCE.finditer(page.read_text(encoding="utf-8")):
        if block["title"]:
            Path(block["title"]).write_text(block["text"], encoding="utf-8")
    lines = commands(page)
    for number, line in enumerate(lines):
        read = [file for file in sorted(Path().iterdir()) if file.is_file() and file.name in line]
        key = line + "".join(file.read_text(encoding="utf-8") for file in read)
        needed = any("runs/" in later for later in lines[number:])
        if why_not(line) or (key in done and not needed):
            continue
        stand_in(line, cache)
        run(line)
        out = capsys.readouterr().out
        if " > " in line:
            Path(line.partition(" > ")[2]).write_text(out, encoding="utf-8")
        done.add(key)


def run(line: str) -> None:
    """In this process. A finding of the doctor's is a result, too."""
    match shlex.split(line.partition(" > ")[0]):
        case ["python", "-m", "webbrowser", shown]:
            assert Path(shown).is_file(), line
        case ["make", "train", *settings]:
            given = [word for each in settings for word in shlex.split(each.partition("=")[2])]
            assert outfox("train", *given) == 0, line
        case ["outfox", "doctor", *options]:
            assert outfox("doctor", *options) in (0, 1), line
        case ["outfox", *words]:
            assert outfox(*words) == 0, line
        case _:
            raise AssertionError(f"nothing runs this command, and no reason is given: {line}")


def outfox(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0)


def stand_in(line: str, cache: Path) -> None:
    """What a training of seconds, or a page, has less of than a reader."""
    for named in _CHECKPOINT.finditer(line):
        last = sorted(Path(named[1]).iterdir())[-1]
        Path(named[0]).symlink_to(last.absolute())
    for file in re.findall(r"tasks\.path=(\S+\.jsonl)", line):
        rows = Path(file).read_text(encoding="utf-8").splitlines(keepends=True)
        if len(rows) == 1:
            Path(file).write_text("".join(rows * ROWS), encoding="utf-8")
    used = any(MODEL in file.read_text(encoding="utf-8") for file in Path().glob("*.yaml"))
    if used and not Path(MODEL).exists():
        model = cache / MODEL
        if not model.exists():
            assert outfox("train", "when-to-search", f"run.dir={cache / 'run'}") == 0
            shutil.copytree(sorted((cache / "run" / "checkpoints").iterdir())[-1], model)
        Path(MODEL).symlink_to(model)
