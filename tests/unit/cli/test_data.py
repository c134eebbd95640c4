import json
from pathlib import Path

import pytest

from outfox.cli import data, main
from outfox.core.parts import built_ins


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["data", *arguments])
    return int(caught.value.code or 0)


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_good_tasks_are_counted_by_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write(
        tmp_path / "q.jsonl",
        {"question": "Capital of Peru?", "answer": "Lima", "kind": "one"},
        {"question": "Capital of Chad?", "answer": "N'Djamena", "kind": "one"},
    )
    assert run("validate", str(path)) == 0
    assert capsys.readouterr().out == f"{path}: 2 tasks, all usable (format rows)\n"
    assert run("validate", str(path), "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "path": str(path),
        "format": "rows",
        "tasks": 2,
        "kinds": {"one": 2},
    }


def test_a_missing_column_is_told_with_its_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write(tmp_path / "q.jsonl", {"question": "a", "answer": "b"}, {"question": "c"})
    assert run("validate", str(path)) == 2
    told = capsys.readouterr().err
    assert "row 2" in told
    assert "'answer'" in told
    assert told.count("\n") == 1


def test_rows_of_another_system_are_checked_as_its_format_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = write(tmp_path / "q.jsonl", {"problem": "2 + 3?", "answer": "5"})
    assert run("validate", str(path)) == 2
    assert "set tasks.format" in capsys.readouterr().err
    assert run("validate", str(path), "--format", "{type: easyr1, prompt_key: problem}") == 0
    assert capsys.readouterr().out == f"{path}: 1 tasks, all usable (format easyr1)\n"
    assert run("validate", str(path), "--format", "easyr2") == 2
    assert "Did you mean 'easyr1'" in capsys.readouterr().err


def test_a_corpus_is_checked_and_an_empty_one_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = write(tmp_path / "c.jsonl", {"id": "1", "contents": "Lima is in Peru."})
    assert run("validate", str(path), "--corpus") == 0
    assert "1 documents, all usable" in capsys.readouterr().out
    path.write_text("")
    assert run("validate", str(path), "--corpus") == 2
    assert "holds at least one document" in capsys.readouterr().err


def test_list_shows_recipes_worlds_and_task_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "mine.yaml").write_text("# Train on my questions.\nsteps: 1\n")
    (tmp_path / "plain.yaml").write_text("steps: 1\n")
    monkeypatch.setattr(data, "RECIPES", tmp_path)
    assert run("list", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"kind": "recipe", "name": "mine", "about": "Train on my questions."} in rows
    assert {"kind": "recipe", "name": "plain", "about": ""} in rows
    assert [row["name"] for row in rows if row["kind"] == "world"] == list(built_ins("world"))
    assert all(row["about"] for row in rows if row["kind"] != "recipe")
    assert run("list") == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.split(maxsplit=2) == ["recipe", "mine", "Train on my questions."]
