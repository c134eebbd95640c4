"""Runs in two processes, Ctrl-C, and a process that dies."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outfox import open_run
from outfox.cli import processes
from outfox.core.errors import OutfoxError
from outfox.core.types import Trajectory
from outfox.store.run_folder import RunFolder

RECIPE = Path(__file__).parent / "recipes" / "small.yaml"
PATIENCE = 120.0
"""Seconds; far more than needed, so that a hang fails the test instead of stopping it."""


def from_trained(trained: str, *overrides: str) -> list[str]:
    """No cold start: its bits would depend on the number of processes."""
    return [f"model.path={trained}", "cold_start.steps=0", "eval.before=false", *overrides]


def played(run: RunFolder, step: int) -> list[Trajectory]:
    return [t for scored in run.groups(step) for t in scored.group.trajectories]


@pytest.fixture(scope="module")
def together(go: Any, trained: str, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    path = tmp_path_factory.mktemp("together") / "run"
    return go(path, *from_trained(trained), "steps=2", "processes=2", "save.every=1")


def test_two_processes_play_what_one_plays(
    go: Any, trained: str, together: RunFolder, tmp_path: Path
):
    alone = go(tmp_path / "alone", *from_trained(trained), "steps=1")
    ours, theirs = played(alone, 0), played(together, 0)
    assert len(ours) == len(theirs) == 16
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.group_id, mine.sibling) == (other.group_id, other.sibling)
        assert mine.stop_reason == other.stop_reason
        for one, two in zip(mine.ledgers, other.ledgers, strict=True):
            assert np.array_equal(one.token_ids, two.token_ids)
    totals = [[s.total for g in run.groups(0) for s in g.scores] for run in (alone, together)]
    assert totals[0] == totals[1]


def test_two_processes_run_through_and_twice_the_same(
    go: Any, trained: str, together: RunFolder, tmp_path: Path
):
    assert together.about["processes"] == 2
    assert together.checkpoints() == [0, 1]
    assert together.summary()["after"]["n"]["questions"] == 18
    again = go(tmp_path / "again", *from_trained(trained), "steps=2", "processes=2", "save.every=1")
    for name in ("metrics.jsonl", "summary.json", "checkpoints/step-000001/model.safetensors"):
        assert (again.path / name).read_bytes() == (together.path / name).read_bytes()


# -- ends -----------------------------------------------------------------------------------------
@contextmanager
def under_way(folder: Path, *overrides: str) -> Iterator[subprocess.Popen[str]]:
    """The command line in a session of its own, once reinforcement has begun."""
    words = [str(RECIPE), f"run.dir={folder}", "steps=4000", "save.every=1", *overrides]
    process = subprocess.Popen(
        [sys.executable, "-c", "from outfox.cli import main; main()", "train", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        run, deadline = folder / "checkpoints", time.monotonic() + PATIENCE
        while not (run.is_dir() and any(p.name[0] != "." for p in run.iterdir())):
            assert process.poll() is None, process.stderr and process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield process
    finally:
        if members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def members(session: int) -> dict[int, int]:
    """Living processes of a session: process id to parent's."""
    found: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            if int(fields[3]) == session and fields[0] != "Z":
                found[int(folder.name)] = int(fields[1])
    return found


def worker_of(process: subprocess.Popen[str]) -> int:
    """The other rank: a child that is no resource tracker."""
    children = [pid for pid, parent in members(process.pid).items() if parent == process.pid]
    ranks = [p for p in children if b"spawn_main" in Path(f"/proc/{p}/cmdline").read_bytes()]
    assert len(ranks) == 1
    return ranks[0]


def ended(session: int) -> bool:
    """Within a few seconds, nothing of the session is left."""
    for _ in range(100):
        if not members(session):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("count", [1, 2])
def test_ctrl_c_tells_how_to_go_on_and_leaves_no_process(trained: str, tmp_path: Path, count: int):
    folder = tmp_path / "run"
    with under_way(folder, *from_trained(trained, f"processes={count}")) as process:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process
        _, told = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert f"stopped; go on with: outfox train --resume {folder}" in told
        assert "Traceback" not in told
        assert ended(process.pid)
    assert open_run(folder).checkpoints()


def test_a_process_that_dies_ends_the_run_with_one_line(trained: str, tmp_path: Path):
    folder = tmp_path / "run"
    with under_way(folder, *from_trained(trained, "processes=2")) as process:
        os.kill(worker_of(process), signal.SIGKILL)
        _, told = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        (line,) = [line for line in told.splitlines() if line.startswith("outfox: ")]
        assert "process 1 ended too soon with exit code -9" in line
        assert f"outfox train --resume {folder}" in line
        assert "Traceback" not in told
        assert ended(process.pid)


def test_a_process_that_dies_before_it_is_there_is_not_waited_for(
    go: Any, trained: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
):
    monkeypatch.setattr(processes, "_work", os.getpgid)  # given two arguments, it raises
    with pytest.raises(OutfoxError, match="process 1 ended too soon with exit code 1"):
        go(tmp_path / "run", *from_trained(trained, "processes=2"))
    assert "TypeError" in capfd.readouterr().err
