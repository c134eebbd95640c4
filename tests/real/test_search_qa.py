"""`outfox train search-qa`: two steps of a real model on real questions, killed and resumed."""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

SMALL = (
    "steps=2",
    "cold_start.steps=1",
    "cold_start.items=3",
    "rollout.tasks=2",
    "rollout.group_size=2",
    "rollout.max_turns=2",
    "rollout.max_new_tokens=40",
    "eval.questions=4",
    "eval.before=false",
    "save.every=1",
)
OUTFOX = (sys.executable, "-c", "from outfox.cli import main; main()")
ENVIRONMENT = {**os.environ, "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def asked(model: Path, data: Path) -> tuple[str, ...]:
    """The command, but for settings."""
    tasks, corpus = data / "questions.jsonl.gz", data / "corpus.jsonl.gz"
    paths = (f"model.path={model}", f"tasks.path={tasks}", f"corpus.path={corpus}")
    return (*OUTFOX, "train", "search-qa", *paths)


def finished(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )


def test_killed_after_a_step_it_ends_in_the_same_bits(asked: tuple[str, ...], tmp_path: Path):
    command = (*asked, f"cache.dir={tmp_path / 'cache'}", *SMALL)
    whole = finished(*command, "run.dir=whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr[-3000:]

    dying = subprocess.Popen(
        (*command, "run.dir=killed"), cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.DEVNULL
    )
    while not (tmp_path / "killed/checkpoints/step-000000").exists():
        assert dying.poll() is None, "it ended before it could be killed"
        time.sleep(0.2)
    time.sleep(3)  # Into the second step.
    dying.kill()
    dying.wait()
    assert not (tmp_path / "killed/summary.json").exists()

    resumed = finished(*OUTFOX, "train", "--resume", "killed", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr[-3000:]
    assert "resuming after step 0" in resumed.stderr
    left, right = tmp_path / "whole", tmp_path / "killed"
    for name in ("metrics.jsonl", "summary.json", "checkpoints/step-000001/model.safetensors"):
        assert (left / name).read_bytes() == (right / name).read_bytes(), name
    assert "<html" in (right / "report.html").read_text()
    tell(left)


def tell(run: Path) -> None:
    """What the run took, for whoever reads the test's output."""
    seconds: dict[str, float] = defaultdict(float)
    for line in (run / "timings.jsonl").read_text().splitlines():
        for name, value in json.loads(line).items():
            if isinstance(value, float):
                seconds[name] += value
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    told = ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items() if value >= 1)
    print(f"\npeak memory of a run: {peak:.1f} GB; {told}")


def test_a_model_without_a_chat_template_is_told_in_one_line(
    asked: tuple[str, ...], model: Path, tmp_path: Path
):
    bare = tmp_path / "bare"
    bare.mkdir()
    for file in model.iterdir():
        if file.suffix == ".safetensors":
            (bare / file.name).symlink_to(file.resolve())
        elif file.name != "chat_template.jinja":
            shutil.copy(file, bare)
    refused = finished(*asked, f"model.path={bare}", cwd=tmp_path)
    assert refused.returncode == 2
    [line] = refused.stderr.strip().splitlines()
    assert "this tokenizer has none: set its chat_template" in line
