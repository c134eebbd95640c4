"""Whole comparisons: all runs, what they show together, and going on."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outfox import cli, open_run
from outfox.cli import display

SMALL = Path(__file__).parent / "recipes" / "small.yaml"
FILE = f"""
base: {SMALL}
seeds: [0, 1]
variants:
  default: {{}}
  outcome-only: {{rubric: outcome_only}}
  reading-off: {{readings: {{}}}}
against: outcome-only
asks: [{{difference: accuracy, at_least: -1}}, {{value: closed_book_recall, at_most: 1}}]
"""
BRIEF = [
    *("steps=1", "cold_start.steps=2", "cold_start.items=4", "eval.questions=9"),
    *("rollout.tasks=2", "rollout.group_size=2", "solvability.samples=2", "eval.greedy=true"),
]
RUNS = [f"{name}-seed{k}" for k in (0, 1) for name in ("default", "outcome-only", "reading-off")]
Train = Callable[..., int]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("comparison")
    (place / "mine.yaml").write_text(FILE)
    return place


@pytest.fixture(scope="module")
def compare(desk: Path) -> Train:
    """Exit code of `outfox train mine.yaml` with settings; runs in `runs` of the desk."""

    def train(*words: str, brief: bool = True) -> int:
        places = [f"cache.dir={desk / 'cache'}", f"run.dir={desk / 'runs'}"]
        file = str(desk / "mine.yaml")
        with pytest.raises(SystemExit) as ended:
            cli.main(["train", file, *(BRIEF if brief else []), *places, *words])
        return int(ended.value.code or 0)

    return train


@pytest.fixture(scope="module")
def content(compare: Train, desk: Path) -> Any:
    """A comparison that was stopped once and went on."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        stop_in(monkeypatch, "evaluation before", 2)
        assert compare() == 130
    assert [path.name for path in sorted((desk / "runs").iterdir())] == ["default-seed0"]
    assert compare() == 0
    return json.loads((desk / "runs" / "comparison.json").read_text(encoding="utf-8"))


def stop_in(monkeypatch: pytest.MonkeyPatch, name: str, done: int) -> None:
    """Ctrl-C when the bar of that name says how many are done."""

    class Stopping(display.Bar):
        def __init__(self, progress: Any, bar: str, total: int) -> None:
            super().__init__(progress, bar, total)
            self.name = bar

        def to(self, done_now: int, text: str = "") -> None:
            if (self.name, done_now) == (name, done):
                signal.raise_signal(signal.SIGINT)
            super().to(done_now, text)

    monkeypatch.setattr(display, "Bar", Stopping)


def test_every_run_is_an_ordinary_one(content: Any, desk: Path):
    runs = [open_run(desk / "runs" / name) for name in RUNS]
    assert [run.evaluations() for run in runs] == [["after", "before", "greedy"]] * 6
    assert [run.config["seed"] for run in runs] == [0, 0, 0, 1, 1, 1]
    keys = [row["key"] for run in runs for row in run.events() if row["event"] == "cold_start"]
    assert keys[0] == keys[1] != keys[2]  # the reward has no part in the cold start
    assert len(set(keys)) == 4
    assert runs[2].config["readings"] == {}
    assert runs[1].config["rubric"] != runs[0].config["rubric"]


def test_they_are_shown_side_by_side(content: Any, desk: Path):
    assert content["command"] == " ".join(["outfox train mine.yaml", *BRIEF])
    assert content["seeds"] == [0, 1]
    assert list(content["variants"]) == ["default", "outcome-only", "reading-off"]
    for name, of in content["variants"].items():
        folders = [desk / "runs" / place for place in of["runs"].values()]
        for when in ("before", "after", "greedy"):
            found = [open_run(folder).summary()[when]["accuracy"] for folder in folders]
            assert of[when]["accuracy"]["value"] == pytest.approx(sum(found) / 2, abs=1e-4), name
    assert [row["variant"] for row in content["asks"]] == ["default"] * 2 + ["reading-off"] * 2
    assert all(row["holds"] for row in content["asks"])
    assert "reading-off" in (desk / "runs" / "comparison.html").read_text(encoding="utf-8")


def test_the_same_command_again_makes_no_run(content: Any, compare: Train, desk: Path, capsys):
    before = {path: path.stat().st_mtime_ns for path in (desk / "runs").rglob("*.parquet")}
    assert compare("variants=default,outcome-only", "--json") == 0
    told = capsys.readouterr()
    assert told.err.count("finished: ") == 4
    assert "less outcome-only, paired" in told.err
    again = json.loads(told.out)
    assert list(again["variants"]) == ["default", "outcome-only"]
    assert again["variants"]["default"]["after"] == content["variants"]["default"]["after"]
    assert {path: path.stat().st_mtime_ns for path in (desk / "runs").rglob("*.parquet")} == before


def test_other_settings_do_not_mix_with_what_is_there(content: Any, compare: Train, capsys):
    assert compare("steps=2") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "has other settings: steps: 1 -> 2: remove that run, or choose another run.dir" in line


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ("{readngs: {}}", "reading-off: readngs: unknown key. Did you mean 'readings'?"),
        ("{eval: {questions: 5}}", "reading-off would have others than outcome-only"),
    ],
)
def test_the_last_variant_is_checked_before_the_first_runs(
    tmp_path: Path, broken: str, told: str, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "mine.yaml"
    path.write_text(FILE.replace("{readings: {}}", broken))
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", str(path), f"run.dir={tmp_path / 'runs'}"])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
