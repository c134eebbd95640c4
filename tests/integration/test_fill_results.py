"""Results of runs and comparisons are stored, and fill the tables of the pages."""

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from outfox.core.errors import DataError
from outfox.core.yaml import dump_yaml, load_yaml
from outfox.evaluation.contrast import contrast
from outfox.store.run_folder import RunFolder
from outfox.testing.run import made_up_comparison, made_up_run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return import_module("fill_results")


@pytest.fixture
def pages(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """An English page and a Chinese one with these markers, and one that nothing fills."""

    def make(*markers: str) -> tuple[Path, Path]:
        holes = [f"<!-- {name} -->\nas it was\n<!-- /{name} -->\n" for name in (*markers, "other")]
        text = "# A page\n\n" + "\n".join(holes) + "\nEnd.\n"
        (tmp_path / "docs").mkdir()
        english, chinese = tmp_path / "README.md", tmp_path / "docs" / "page.zh.md"
        for page in (english, chinese):
            page.write_text(text, encoding="utf-8")
        return english, chinese

    return make


def filled(pages: tuple[Path, Path]) -> tuple[str, str]:
    """Both texts; only the hole that no result is for is as it was."""
    english, chinese = (page.read_text(encoding="utf-8") for page in pages)
    for text in (english, chinese):
        assert text.startswith("# A page\n\n<!--")
        assert text.endswith("<!-- other -->\nas it was\n<!-- /other -->\n\nEnd.\n")
        assert text.count("as it was") == 1
        assert "`unanswerable`" in text
    return english, chinese


def test_a_comparison(script: ModuleType, tmp_path: Path, pages: Callable[..., Any], capsys):
    content = contrast(*made_up_comparison(tmp_path / "runs", steps=2, questions=24))
    (tmp_path / "runs" / "comparison.json").write_text(json.dumps(content), encoding="utf-8")
    parts = ("contrast", *(f"contrast {p}" for p in ("asks", "differences", "kinds", "seeds")))
    made = pages(*parts)
    assert script.main([str(tmp_path / "runs"), "--check"], tmp_path) == 2
    assert script.main([], tmp_path) == 0
    assert "filled: README.md" in capsys.readouterr().out
    assert script.main(["--check"], tmp_path) == 0
    english, chinese = filled(made)
    found = content["variants"]["default"]["after"]["calls"]
    assert f"| Searches | {found['value']:.2f} ({found['low']:.2f} to " in english
    assert f"| 每题搜索次数 | {found['value']:.2f} ({found['low']:.2f} 至 " in chinese
    assert "| Accuracy, less outcome-only | ≥ -0.02 |" in english
    assert "outcome-only, seed 1 |" in english
    stored = tmp_path / "docs" / "results" / "when-to-search-contrast.json"
    assert json.loads(stored.read_text(encoding="utf-8")) == content


def finished(path: Path, **config: Any) -> RunFolder:
    """A made-up run with a cold start, gates and more settings."""
    run = made_up_run(path, steps=3, questions=24)
    about = load_yaml(path / "run.yaml")
    assert isinstance(about, dict)
    about["config"] |= {"cold_start": {"steps": 2}, **config}
    (path / "run.yaml").write_text(dump_yaml(about), encoding="utf-8")
    run.add_stage("imitate", [{}], [{"update": 0.1}])
    run.add_event("gates", stage="imitate", values={"recall": 1.0, "copy": 0.9412})
    run.add_event("gates", step=-1, decision=0.5)
    return RunFolder.open(path)


def test_a_run(script: ModuleType, tmp_path: Path, pages: Callable[..., Any]):
    made = pages("results", "results kinds", "results gates")
    run = finished(tmp_path / "run")
    assert script.main([str(run.path)], tmp_path) == 0
    assert script.main(["--check"], tmp_path) == 0
    english, chinese = filled(made)
    before, after = (run.summary()[when] for when in ("before", "after"))
    rise = f"{before['accuracy']:.2f} | {after['accuracy']:.2f}"
    span = after["intervals"]["accuracy"]
    assert "| | before | after | 95 % |" in english
    assert f"| Accuracy | {rise} | {span['low']:.2f} to {span['high']:.2f} |" in english
    assert f"| 正确率 | {rise} | {span['low']:.2f} 至 {span['high']:.2f} |" in chinese
    assert "24 held-out questions, 2 samples each" in english
    assert (
        "1.1 minutes, processes: 1, cold start included. `outfox train when-to-search " in english
    )
    assert "seed=0 steps=3`" in english
    kind = [of["by_kind"]["conflict"] for of in (before, after)]
    shown = [f"{of[key]:.2f}" for key in ("accuracy", "calls") for of in kind]
    assert f"| `conflict` | 4 | {' | '.join(shown)} |" in english
    assert "| copy | 0.941 | at least 0.95 |" in english
    assert "| found | – | 至少 0.9 |" in chinese
    assert "| decision | 0.500 | 低于 0.75 |" in chinese


def test_a_greedy_evaluation_has_a_column_and_a_cached_cold_start_is_told(
    script: ModuleType, tmp_path: Path, pages: Callable[..., Any]
):
    english, _ = pages("results")
    run = finished(tmp_path / "run")
    run.write_summary({**run.summary(), "greedy": {**run.summary()["after"], "accuracy": 0.123}})
    lines = (run.path / "timings.jsonl").read_text().splitlines()
    kept = [line for line in lines if '"imitate"' not in line]
    (run.path / "timings.jsonl").write_text("\n".join(kept) + "\n")
    script.main([str(run.path)], tmp_path)
    text = english.read_text(encoding="utf-8")
    assert "| 95 % | greedy |" in text
    assert "| 0.12 |\n" in text
    assert "cold start from the cache" in text


def test_runs_in_two_languages_are_kept_apart(
    script: ModuleType, tmp_path: Path, pages: Callable[..., Any]
):
    english, _ = pages("results", "results-zh")
    for name, seed in (("en", 1), ("zh", 2)):
        run = finished(tmp_path / name, world={"language": name}, seed=seed)
        assert script.main([str(run.path)], tmp_path) == 0
    text = english.read_text(encoding="utf-8")
    assert "`outfox train when-to-search seed=1 steps=3`" in text
    assert "`outfox train when-to-search seed=2 steps=3 world.language=zh`" in text
    assert text.count("as it was") == 1


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("when-to-search-contrast-reading-off", "when-to-search-contrast variants=reading-off"),
        ("mine", "mine seed=0"),
    ],
)
def test_the_command_of_another_run(script: ModuleType, name: str, told: str):
    words = script.words_of({"name": name, "seed": 0, "steps": 100})
    assert " ".join(words).startswith(told)


def test_only_finished_runs_are_taken(script: ModuleType, tmp_path: Path):
    (tmp_path / "docs").mkdir()
    begun = made_up_run(tmp_path / "run", steps=1, questions=6, finished=False)
    with pytest.raises(SystemExit, match="has an evaluation after training"):
        script.main([str(begun.path)], tmp_path)
    with pytest.raises(DataError, match=r"has a run\.yaml"):
        script.main([str(tmp_path / "docs")], tmp_path)
    assert list((tmp_path / "docs").rglob("*.json")) == []


def test_the_pages_show_the_stored_results(script: ModuleType):
    assert script.main(["--check"]) == 0
