import json
from importlib.metadata import version
from pathlib import Path

import pytest

from outfox.cli import doctor, main
from outfox.cli.doctor import ENABLES, Extra, Folder, diagnose
from outfox.core.extras import extras


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["doctor", *arguments])
    return int(caught.value.code or 0)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_gflops", lambda: 12.5)


def test_the_report_names_what_is_here(capsys: pytest.CaptureFixture[str]):
    assert run("--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["findings"] == []
    assert report["torch"] == version("torch")
    assert report["torch_build"] == "CPU"
    assert report["cpus"] >= 1
    assert report["extras"]["local"]["missing"] == []
    assert run() == 0
    told = capsys.readouterr().out
    assert "12 GFLOP/s" in told
    assert "all that `outfox train` needs is here" in told


def test_what_is_missing_is_a_finding_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    monkeypatch.setattr(doctor, "_has", lambda package: package != "torch")
    monkeypatch.setattr(
        doctor,
        "_folder",
        lambda path: Folder(path=str(path), free_gb=0.5, writable=path == Path.cwd()),
    )
    assert run() == 1
    told = capsys.readouterr().out
    assert "torch     not installed" in told
    assert "! training needs torch: pip install 'outfox[local]'" in told
    assert "outfox cannot be written: set cache.dir=FOLDER" in told
    assert "has 0.5 GB left of the 2 GB that a run needs: make room, or set run.dir=FOLDER" in told


def test_a_folder_that_does_not_exist_yet_is_judged_by_the_one_above(tmp_path: Path):
    folder = doctor._folder(tmp_path / "a" / "b")
    assert folder.path == str(tmp_path / "a" / "b")
    assert folder.writable
    assert folder.free_gb > 0
    assert list(tmp_path.iterdir()) == []


def test_a_cuda_build_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "version.py").write_text(
        "from typing import Optional\n__version__ = '9'\ncuda: Optional[str] = '12.8'\nhip = None\n"
    )

    class Spec:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr(doctor, "find_spec", lambda name: Spec)
    assert diagnose().torch_build == "CUDA 12.8"


def test_every_extra_that_is_told_exists():
    assert set(ENABLES) <= set(extras())
    assert Extra(enables="x", missing=()).missing == ()


def test_the_speed_reading_is_a_speed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    assert 0.1 < doctor._gflops(size=64, seconds=0.01) < 1e6
