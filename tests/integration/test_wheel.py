"""The wheel holds what the clone holds, and works in an environment of its own."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "outfox"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_every_file_of_the_package(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    files = [path for path in SOURCE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    ours = {f"outfox/{path.relative_to(SOURCE).as_posix()}" for path in files}
    assert {name for name in names if name.startswith("outfox/")} == ours
    kinds = {Path(name).suffix for name in ours}
    assert {".py", ".yaml", ".typed"} <= kinds
    assert any(name.startswith("outfox/recipes/") for name in ours)
    assert any(name.startswith("outfox/rewards/presets/") for name in ours)
    assert [name for name in names if name.endswith("/licenses/LICENSE")]
    assert not [name for name in names if not name.startswith(("outfox/", "outfox-"))]


@pytest.mark.slow_wheel
def test_the_installed_wheel_trains(wheel: Path, tmp_path: Path):
    """`make install` with another environment and the wheel in place of the clone."""
    venv = tmp_path / "venv"
    package = f"PACKAGE='outfox[local] @ {wheel.as_uri()}'"
    make = ["make", "install", f"VENV={venv}", f"PYTHON={sys.executable}", package]
    subprocess.run(make, cwd=ROOT, check=True, capture_output=True)

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    small = ["steps=2", "rollout.tasks=2", "cold_start.steps=2", "cold_start.gates=false"]
    few = ["eval.questions=20", "eval.samples=1", "run.dir=run"]
    train = [str(venv / "bin" / "outfox"), "train", "when-to-search", *small, *few]
    done = subprocess.run(
        train, cwd=elsewhere, env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads((elsewhere / "run" / "summary.json").read_text())
    assert {"before", "after"} <= summary.keys()
    assert (elsewhere / "run" / "report.html").is_file()
