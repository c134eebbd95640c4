"""`outfox init`: what is written, and where it refuses."""

from pathlib import Path

import pytest

from outfox.cli import main
from outfox.cli.init import STARTER

FILES = {"corpus.jsonl", "recipe.yaml", "signals.py", "tasks.jsonl", "tools.py"}


def init(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["init", *words])
    return int(ended.value.code or 0)


def test_five_files_are_written_and_two_commands_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert init("my desk/first") == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-2:] == [
        "  outfox data validate 'my desk/first/tasks.jsonl'",
        "  outfox train 'my desk/first/recipe.yaml'",
    ]
    assert {path.name for path in (tmp_path / "my desk/first").iterdir()} == FILES
    for name in FILES:
        assert (tmp_path / "my desk/first" / name).read_bytes() == (STARTER / name).read_bytes()


def test_all_lines_together_are_under_sixty():
    lines = {path.name: len(path.read_text().splitlines()) for path in STARTER.glob("*.*")}
    assert lines.keys() == FILES
    assert sum(lines.values()) < 60
    assert max(map(len, (STARTER / "tasks.jsonl").read_text().splitlines())) < 120


def test_an_empty_folder_will_do(tmp_path: Path):
    assert init(str(tmp_path)) == 0
    assert {path.name for path in tmp_path.iterdir()} == FILES


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "tasks.jsonl").write_text("mine")
    assert init(str(tmp_path)) == 2
    assert "holds tasks.jsonl: name another, or empty it" in capsys.readouterr().err
    assert (tmp_path / "tasks.jsonl").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "file").write_text("")
    assert init(str(tmp_path / "file")) == 2
    assert "is a file: name another" in capsys.readouterr().err
    assert init(str(tmp_path / "file" / "below")) == 2
    assert "cannot be written" in capsys.readouterr().err
