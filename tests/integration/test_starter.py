"""What `outfox init` writes, trained ten steps: it learns, with the user's own tool and signal."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from outfox import cli, open_run
from outfox.cli.init import STARTER
from outfox.core.results import Value
from outfox.store.run_folder import RunFolder

SIGNAL = "signals.py:hours_unchecked"


def command(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, str]:
    """The run, from another folder than the recipe's, and what was printed."""
    place = tmp_path_factory.mktemp("starter")
    with pytest.MonkeyPatch.context() as patch, pytest.MonkeyPatch.context() as home:
        (place / "elsewhere").mkdir()
        patch.chdir(place / "elsewhere")
        home.setenv("XDG_CACHE_HOME", str(place / "cache"))
        assert command("init", str(place / "desk")) == 0
        few = ["cold_start.gates=false", "eval.samples=8", "run.dir=run"]
        assert command("train", str(place / "desk" / "recipe.yaml"), *few) == 0
        return open_run(place / "elsewhere" / "run"), str(place)


def rewards(run: RunFolder) -> list[float]:
    return [row["reward"] for row in run.metrics() if row["stage"] == "reinforce"]


def test_ten_steps_raise_the_reward(trained: tuple[RunFolder, str]):
    run, _ = trained
    made = rewards(run)
    assert len(made) == 10
    assert sum(made[5:]) / 5 > sum(made[:2]) / 2 + 0.02


def test_the_tool_is_called_and_its_text_is_evidence(trained: tuple[RunFolder, str]):
    run, _ = trained
    groups = run.groups(9)
    results = [r for g in groups for t in g.group.trajectories for r in t.results]
    statuses = Counter((result.name, result.status) for result in results)
    assert statuses["opening_hours", "ok"] > 0
    assert statuses["search", "ok"] > 0
    for scored in groups:
        for trajectory, score in zip(scored.group.trajectories, scored.scores, strict=True):
            asked = [call.name for call in trajectory.calls]
            if score.outcome == "right" and asked == ["opening_hours"]:
                assert score.parts.get("unsupported", 0) == 0


def test_the_signal_counts_and_is_shown(trained: tuple[RunFolder, str]):
    run, _ = trained
    for scored in run.groups(0):
        for trajectory, score in zip(scored.group.trajectories, scored.scores, strict=True):
            asked = "open" in trajectory.task.metadata["question"]
            looked = any(call.name == "opening_hours" for call in trajectory.calls)
            assert score.results[SIGNAL] == Value(value=float(asked and not looked))
    for when in ("before", "after"):
        assert SIGNAL in run.summary()[when]["by_signal"]
    assert f"parts/{SIGNAL}/mean" in run.metrics()[-1]
    assert SIGNAL in (run.path / "report.html").read_text(encoding="utf-8")


def test_what_is_held_out_is_never_trained_on(trained: tuple[RunFolder, str]):
    run, _ = trained
    held = {g.group.trajectories[0].task.task_id for g in run.evaluation("after").groups}
    played = {g.group.trajectories[0].task.task_id for k in range(10) for g in run.groups(k)}
    assert len(held) == 4
    assert not held & played


BROKEN = {
    "a function that is not there": (
        "tools.py",
        lambda text: text.replace("opening_hours", "hours"),
        "tools.py has no 'opening_hours'",
    ),
    "a row without an answer": (
        "tasks.jsonl",
        lambda text: text + '{"question": "Where?"}\n',
        "tasks row 15: the column 'reference' or 'answer' is missing",
    ),
    "a row that calls no tool": (
        "tasks.jsonl",
        lambda text: text.replace('"opening_hours": "gym"', '"openinghours": "gym"'),
        "tasks.jsonl row 3: no tool is called 'openinghours'. Did you mean 'opening_hours'?",
    ),
    "a tool that raises": (
        "tools.py",
        lambda text: text.replace('.get(place, "Nothing was found.")', "[place + '!']"),
        "row 1: its call opening_hours('library')",
    ),
    "a tool of two texts": (
        "tools.py",
        lambda text: text.replace("place: str", "place: str, day: str"),
        "needs exactly one text; opening_hours needs (place: string, day: string)",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_wrong_is_said_before_the_run(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    name, damage, told = BROKEN[what]
    monkeypatch.chdir(tmp_path)
    shutil.copytree(STARTER, tmp_path / "desk", ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "desk" / name
    file.write_text(damage(file.read_text()))
    assert command("train", "desk/recipe.yaml", "run.dir=run") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert not Path("run").exists()


def test_a_signal_that_returns_nonsense_is_told_once(
    trained: tuple[RunFolder, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """The cold start is the one that `trained` made: a signal has no say in it."""
    _, place = trained
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", f"{place}/cache")
    shutil.copytree(f"{place}/desk", tmp_path / "desk")
    file = tmp_path / "desk" / "signals.py"
    file.write_text(file.read_text().replace("asked and not any(", "7 + any("))
    few = ["steps=2", "rollout.group_size=2", "eval.before=false", "eval.samples=1"]
    assert command("train", "desk/recipe.yaml", "cold_start.gates=false", *few) == 0
    said = capsys.readouterr().err
    assert "cold start from the cache" in said
    (line,) = [line for line in said.splitlines() if line.startswith("warning: the signal")]
    assert "outside its range [0, 1]" in line
    assert "mend the signal" in line
