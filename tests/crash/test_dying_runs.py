"""A run that dies at any durable operation, or at any instant, ends as if it had not.

Here a sample; `make test-crash` takes every operation, a full disk at each, and 200 instants.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "dying_runs.py"
EVERYTHING = os.environ.get("OUTFOX_TEST_CRASH") == "all"


def died(folder: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("options", [[], ["--full"]], ids=["killed", "full"])
def test_at_a_durable_operation(tmp_path: Path, options: list[str]):
    every = "1" if EVERYTHING else "31" if not options else "67"
    told = died(tmp_path, "--every", every, *options)
    assert " 0 runs that came out otherwise" in told


def test_at_any_instant(tmp_path: Path):
    told = died(tmp_path, "--kills", "200" if EVERYTHING else "20")
    assert "0 runs that came out otherwise" in told
