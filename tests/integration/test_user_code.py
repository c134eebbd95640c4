"""Signals, tools and rows of the user's own, in real runs."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from outfox import cli, open_run, train
from outfox.build import assemble
from outfox.core.config import load_recipe
from outfox.core.results import SignalCrash, SignalTimeout, Value
from outfox.core.types import ToolResult
from outfox.store.run_folder import RunFolder

RECIPE = Path(__file__).parent / "recipes" / "small.yaml"
NAME = "rewards/mine.py:wordy"
SIGNAL = """
import outfox

@outfox.signal(range=(0, 1), family="cost")
def wordy(trajectory, context, *, per: int = 10):
    "Policy tokens, as a share of `per`."
    written = sum(int(ledger.loss_mask.sum()) for ledger in trajectory.ledgers)
    return min(1.0, written / per)
"""
RUBRIC = f"""
extends: default
if_right: {{deduct: {{{NAME}: .1}}}}
if_not_right: {{deduct: {{{NAME}: .2}}}}
settings: {{{NAME}: {{per: 1000}}}}
"""
TOOL = '''
from outfox import tool

CALLS = []

@tool
def search(query: str) -> str:
    """Search for passages.

    Args:
        query: What to look for.
    """
    CALLS.append(query)
    return "Nothing is known about this."

def lookup(place: str) -> str:
    """Look up a place.

    Args:
        place: Its name.
    """
    return place
'''


def command(*words: str) -> int:
    """Exit code of the command line."""
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    return int(ended.value.code or 0)


def briefly(trained: str) -> str:
    return f"""
extends: {RECIPE}
cold_start: {{steps: 0}}
replay: {{items: 0}}
model: {{path: {trained}}}
steps: 1
eval: {{questions: 8, before: false}}
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's, which is not the current one."""
    (tmp_path / "desk" / "rewards").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "desk"


def test_a_signal_of_ones_own_counts_and_is_found_again(desk: Path, trained: str):
    (desk / "rewards" / "mine.py").write_text(SIGNAL)
    (desk / "mine.yaml").write_text(RUBRIC)
    (desk / "recipe.yaml").write_text(briefly(trained) + "rubric: mine.yaml\n")
    run = train(desk / "recipe.yaml", ["run.dir=run"])
    (file,) = run.about["files"]
    assert file == str(desk / "rewards" / "mine.py")
    charged = 0
    for scored in run.groups(0):
        for trajectory, score in zip(scored.group.trajectories, scored.scores, strict=True):
            written = sum(int(ledger.loss_mask.sum()) for ledger in trajectory.ledgers)
            assert written > 0
            assert score.results[NAME] == Value(value=pytest.approx(written / 1000))
            charged += score.parts.get(NAME, 0) < 0
    assert charged > 0
    assert f"parts/{NAME}/mean" in run.metrics()[-1]
    assert command("train", "--no-user-code", "--resume", str(run.path)) == 2
    assert command("train", "--resume", str(run.path)) == 0


def test_a_run_with_relative_paths_is_resumed_from_another_folder(
    desk: Path, trained: str, monkeypatch: pytest.MonkeyPatch
):
    (desk / "rewards" / "mine.py").write_text(SIGNAL)
    monkeypatch.chdir(desk)
    words = ["steps=1", f"rubric={{version: 1, if_right: {{cap: .1, deduct: {{{NAME}: .1}}}}}}"]
    (desk / "recipe.yaml").write_text(briefly(trained))
    run = train("./recipe.yaml", ["run.dir=run", *words])
    path = run.path.absolute()
    monkeypatch.chdir(desk.parent)
    assert command("train", "--resume", str(path)) == 0
    assert open_run(path).summary()["after"]["n"]["questions"] == 8


def test_a_signal_that_fails_leaves_its_episode_out_and_says_why(desk: Path, trained: str):
    (desk / "broken.py").write_text(SIGNAL.replace("written / per", "written / 0"))
    (desk / "recipe.yaml").write_text(briefly(trained))
    deduct = "{deduct: {broken.py:wordy: .1}}"
    rubric = f"{{version: 1, if_right: {deduct}, if_not_right: {deduct}}}"
    run = train(desk / "recipe.yaml", ["run.dir=run", f"rubric={rubric}"])
    scores = [score for scored in run.groups(0) for score in scored.scores]
    assert {score.outcome for score in scores} == {"failed"}
    assert {score.total for score in scores} == {None}
    why = scores[0].results["broken.py:wordy"].why
    assert "ZeroDivisionError" in why
    assert "broken.py" in why or "wordy on task" in why
    assert run.metrics()[-1]["left_out/unscored"] == 16


def test_a_tool_of_ones_own_is_offered_beside_the_worlds(desk: Path, trained: str, capsys):
    (desk / "my_tools.py").write_text(TOOL)
    own = briefly(trained) + "tools: [my_tools.py:lookup]\n"
    (desk / "recipe.yaml").write_text(own)
    assert command("train", str(desk / "recipe.yaml"), "run.dir=run") == 2
    assert "set solvability.source=world" in capsys.readouterr().err
    (desk / "recipe.yaml").write_text(own + "solvability: {source: world}\n")
    system = assemble(load_recipe(desk / "recipe.yaml"))
    (task,) = system.world.train.take(0, 1)
    names = [tool.spec.name for tool in system.world.environment.tools(task, 0)]
    assert names == ["search", "lookup"]
    run = train(desk / "recipe.yaml", ["run.dir=run"])
    assert run.summary()["after"]["n"] == {"questions": 8, "episodes": 8, "failed": 0}


def results(run: RunFolder) -> list[ToolResult]:
    return [
        result
        for scored in run.evaluation("after").groups
        for trajectory in scored.group.trajectories
        for turn in trajectory.turns
        if turn.observation
        for result in turn.observation.results
    ]


def rows_of(trained: str, count: int) -> list[dict[str, Any]]:
    """Questions in words that the policy has learned."""
    world = assemble(load_recipe(RECIPE, [f"model.path={trained}"])).world
    return [
        {
            "id": task.task_id,
            "prompt": [
                {k: v for k, v in asdict(m).items() if k in ("role", "content")}
                for m in task.prompt
            ],
            "reference": task.reference,
            "difficulty": index,
        }
        for index, task in enumerate(world.train.take(0, count))
    ]


def test_rows_and_tools_of_ones_own_make_a_world(desk: Path, trained: str):
    rows = rows_of(trained, 32)
    (desk / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (desk / "my_tools.py").write_text(TOOL)
    (desk / "recipe.yaml").write_text(
        briefly(trained).replace(str(RECIPE), str(desk / "base.yaml"))
        + "world: {type: rows, held_out: .25}\ntasks: {path: questions.jsonl}\n"
        + "tools: [my_tools.py:search]\n"
    )
    (desk / "base.yaml").write_text(RECIPE.read_text())
    run = train(desk / "recipe.yaml", ["run.dir=run", "eval.samples=4"])
    assert run.summary()["after"]["n"] == {"questions": 8, "episodes": 32, "failed": 0}
    found = results(run)
    assert {result.content for result in found} == {"Nothing is known about this."}
    assert {result.status for result in found} == {"ok"}
    asked = {s.group.trajectories[0].task.task_id for s in run.evaluation("after").groups}
    played = {s.group.trajectories[0].task.task_id for s in run.groups(0)}
    assert not asked & played
    assert all("difficulty" in s.group.trajectories[0].task.metadata for s in run.groups(0))


def test_a_missing_column_stops_before_the_run(desk: Path, trained: str, capsys):
    (desk / "questions.jsonl").write_text('{"question": "a?", "answer": "b"}\n{"question": "c?"}\n')
    (desk / "recipe.yaml").write_text(
        briefly(trained) + "world: rows\ntasks: {path: questions.jsonl}\n"
    )
    (desk / "my_tools.py").write_text(TOOL)
    words = ["run.dir=run", "tools=[my_tools.py:search]"]
    assert command("train", str(desk / "recipe.yaml"), *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "row 2" in line
    assert "'reference' or 'answer'" in line
    assert not Path("run").exists()


HOSTILE = """
import os
import time
from pathlib import Path
from outfox import signal, tool

HERE = Path(__file__).parent


@signal(range=(0, 1), family="cost")
def moody(trajectory):
    "In the second step it never answers of one sibling and ends with another, in a bad mood."
    step = int(trajectory.group_id.partition("/")[0])
    if step == 1 and trajectory.sibling in (1, 2):
        (HERE / "asked").open("a").write(f"{trajectory.group_id}/{trajectory.sibling} ")
        if not (HERE / "good").exists():
            time.sleep(1e6) if trajectory.sibling == 2 else os._exit(7)
    return 0.25


@tool(timeout_seconds=.5)
def search(query: str) -> str:
    '''Search for passages.

    Args:
        query: What to look for.
    '''
    if len(query) % 3 == 0 and not (HERE / "good").exists():
        time.sleep(1e6)
    return "Nothing is known about this."
"""


def test_a_run_goes_on_after_time_outs_and_crashes_and_a_resumed_one_keeps_them(
    desk: Path, trained: str
):
    rows = rows_of(trained, 24)
    (desk / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (desk / "own.py").write_text(HOSTILE)
    (desk / "base.yaml").write_text(RECIPE.read_text())
    (desk / "recipe.yaml").write_text(
        briefly(trained)
        .replace(str(RECIPE), str(desk / "base.yaml"))
        .replace("steps: 1", "steps: 2")
        + "world: {type: rows, held_out: .34}\ntasks: {path: questions.jsonl}\n"
        + "tools: [own.py:search]\nuser_code: {seconds: 1}\nsave: {every: 1}\n"
        + "rubric: {if_right: {deduct: {own.py:moody: .1}},"
        + " if_not_right: {deduct: {own.py:moody: .1}}}\n"
    )
    run = train(desk / "recipe.yaml", ["run.dir=run"])
    first, metrics = run.groups(1), run.metrics()
    came_to = [[type(score.results["own.py:moody"]) for score in g.scores] for g in first]
    assert came_to == [[Value, SignalCrash, SignalTimeout, Value]] * 4
    assert [[score.outcome == "failed" for score in g.scores] for g in first] == [
        [False, True, True, False]
    ] * 4
    assert metrics[-1]["signals/timeouts"] == metrics[-1]["signals/crashes"] == 4
    assert metrics[-1]["left_out/unscored"] == 8
    statuses = {r.status for g in first for t in g.group.trajectories for r in t.results}
    assert statuses == {"ok", "timeout"}
    kept = [row for row in run.events() if row["event"] == "user_code"]
    counted = [
        row.get(f"{of}/{what}", 0)
        for row in metrics
        for of in ("signals", "tools")
        for what in ("timeouts", "crashes")
    ]
    assert len(kept) == sum(counted)
    asked = (desk / "asked").read_text().split()
    assert {asked.count(group) for group in asked} == {2}
    assert len(set(asked)) == 8

    (desk / "good").touch()
    shutil.rmtree(run.checkpoint(1))
    assert command("train", "--resume", str(run.path)) == 0
    assert run.metrics() == metrics
    assert [g.scores for g in run.groups(1)] == [g.scores for g in first]
    assert [row for row in run.events() if row["event"] == "user_code"] == kept
    assert (desk / "asked").read_text().split() == asked


def test_without_code_of_the_users_no_process_is_started(go, trained: str, tmp_path, monkeypatch):
    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("outfox.core.isolation.process.subprocess.Popen", refused)
    run = go(tmp_path / "run", f"model.path={trained}", "cold_start.steps=0", "steps=1")
    assert run.steps() == [0]


def test_code_may_run_in_the_process_of_the_run(desk: Path, trained: str, monkeypatch):
    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("outfox.core.isolation.process.subprocess.Popen", refused)
    (desk / "rewards" / "mine.py").write_text(SIGNAL)
    (desk / "mine.yaml").write_text(RUBRIC)
    (desk / "recipe.yaml").write_text(briefly(trained) + "rubric: mine.yaml\n")
    run = train(desk / "recipe.yaml", ["run.dir=run", "user_code.isolated=false"])
    assert {NAME} < set(run.groups(0)[0].scores[0].results)
