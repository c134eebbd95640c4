"""A tracker of one's own in a whole run: what it is shown, and that the run is the same without."""

import json
from pathlib import Path
from typing import Any

import pytest

from outfox import train
from outfox.store.run_folder import RunFolder

RECIPE = Path(__file__).parent / "recipes" / "small.yaml"
BRIEF = ["cold_start.steps=2", "cold_start.items=4", "steps=2", "eval.questions=8"]
OWN = """
import json
from dataclasses import dataclass
from pathlib import Path

@dataclass(kw_only=True)
class Lines:
    file: str
    fails: bool = False

    def begin(self, run):
        return run.id or run.name

    def log(self, step, metrics, samples):
        if self.fails:
            raise OSError("no line")
        with Path(self.file).open("a") as lines:
            lines.write(json.dumps([step, metrics, samples]) + "\\n")

    def end(self, summary):
        with Path(self.file).open("a") as lines:
            lines.write(json.dumps(["end", summary]) + "\\n")
"""


def bits(run: RunFolder) -> dict[str, bytes]:
    """All files but clocks and what is about trackers."""
    apart = {"run.yaml", "run.lock", "timings.jsonl", "report.html", "trackers.json"}
    files = [path for path in run.path.rglob("*") if path.is_file() and path.name not in apart]
    return {str(path.relative_to(run.path)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def cache_of_this(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    return tmp_path / "lines.jsonl"


def go(place: Path, cache: Path, *trackers: dict[str, Any]) -> RunFolder:
    folders = [f"run.dir={place}", f"cache.dir={cache}"]
    return train(RECIPE, [*BRIEF, *folders, f"trackers={json.dumps(trackers)}"])


def test_a_tracker_is_shown_the_run_which_is_the_same_without(
    tmp_path: Path, cache_of_this: Path, lines: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "own.py").write_text(OWN)
    kind = f"{tmp_path / 'own.py'}:Lines"
    good = {"type": kind, "file": str(lines)}
    run = go(tmp_path / "shown", cache_of_this, good, {**good, "fails": True})
    alone = go(tmp_path / "alone", cache_of_this)
    assert bits(run) == bits(alone)
    assert not (alone.path / "trackers.json").exists()
    assert run.config["trackers"] == [{**good, "fails": False}, {**good, "fails": True}]
    *rows, (_, summary) = [json.loads(line) for line in lines.read_text().splitlines()]
    stored = [row for row in run.metrics() if row["stage"] == "reinforce"]
    assert [(step, len(samples)) for step, _, samples in rows] == [(0, 3), (1, 0)]
    for (_, shown, _), row in zip(rows, stored, strict=True):
        numbers = {k: v for k, v in row.items() if k not in ("step", "stage") and v is not None}
        assert {k: v for k, v in shown.items() if not k.startswith("seconds/")} == numbers
        assert {"seconds/rollout", "seconds/update"} <= shown.keys()
    assert summary["after/accuracy"] == run.summary()["after"]["accuracy"]
    assert capsys.readouterr().err.count("failed and is left alone: OSError: no line") == 1
