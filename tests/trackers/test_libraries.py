"""The trackers on their own libraries, without a network. `make test-trackers` runs this."""

import json
import os
import re
import shlex
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import pytest
import trackio
import wandb
from mlflow import MlflowClient
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from trackio.sqlite_storage import SQLiteStorage
from wandb.proto.wandb_internal_pb2 import Record

from outfox.core.config import Part
from outfox.core.errors import ConfigError
from outfox.core.parts import Parts, built_ins, settings_type
from outfox.core.protocols import Tracker
from outfox.store.run_folder import RunFolder
from outfox.store.trackers.mlflow import MLflow
from outfox.store.trackers.tensorboard import TensorBoard
from outfox.store.trackers.trackio import Trackio
from outfox.store.trackers.wandb import WandB
from outfox.testing.trackers import SAMPLE, check_tracker

pytestmark = pytest.mark.filterwarnings("default")  # The libraries warn of each other.

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "tests" / "integration" / "recipes" / "small.yaml"
STEPS = [(0, 0.0), (1, 0.25), (2, 0.5), (3, 0.75), (4, 1.0)]
"""What `check_tracker` logs as `reward`."""

Rows = list[tuple[int, float]]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run folder, in an empty current folder."""
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "run-001"
    made.mkdir()
    return made


# -- what the libraries hold ----------------------------------------------------------------------
def tensorboard_rows(folder: Path, tag: str) -> Rows:
    read = EventAccumulator(str(folder))
    read.Reload()
    return [(event.step, event.value) for event in read.Scalars(tag)]


def tensorboard_texts(folder: Path, tag: str) -> list[tuple[int, str]]:
    read = EventAccumulator(str(folder))
    read.Reload()
    assert tag in read.PluginTagToContent("text")
    return [(event.step, event.tensor_proto.string_val[0].decode()) for event in read.Tensors(tag)]


def mlflow_rows(uri: str, run: str, name: str) -> Rows:
    found = MlflowClient(tracking_uri=uri).get_metric_history(run, name)
    return [(metric.step, metric.value) for metric in found]


def trackio_rows(name: str, key: str) -> list[tuple[int, Any]]:
    logs = SQLiteStorage.get_logs("outfox", name)
    return [(row["step"], row[key]) for row in logs if key in row]


def wandb_records(folder: Path) -> list[list[Record]]:
    """The records of each offline run below `folder`, oldest first."""
    wandb.teardown()  # Its service may close a file a moment after `finish`.
    files = sorted(folder.glob("wandb/offline-run-*/*.wandb"))
    return [[Record.FromString(each) for each in log_records(file)] for file in files]


def log_records(file: Path) -> Iterator[bytes]:
    """LevelDB's log format behind seven bytes: checksum (4), length (2), type (1), data; a record
    is whole (1), or a first (2), middle (3) and last (4) piece; blocks have 32 KiB."""
    data, at, held = file.read_bytes(), 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        held += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield held
            held = b""


def wandb_rows(records: list[Record], key: str) -> Rows:
    found: Rows = []
    for record in records:
        if record.WhichOneof("record_type") == "history":
            row = {item.key or item.nested_key[0]: item.value_json for item in record.history.item}
            if key in row:
                found.append((record.history.step.num, json.loads(row[key])))
    return found


# -- each by itself -------------------------------------------------------------------------------
def test_tensorboard_reads_one_run_from_both_files(place: Path):
    check_tracker(TensorBoard, place)
    written = place / "tensorboard"
    assert len(list(written.iterdir())) == 2
    assert tensorboard_rows(written, "reward") == STEPS
    assert tensorboard_rows(written, "after/accuracy") == [(0, 0.5)]
    assert tensorboard_texts(written, "samples/0") == [
        (0, "".join(f"    {line}\n" for line in SAMPLE.splitlines()))
    ]
    ((step, config),) = tensorboard_texts(written, "config")
    assert (step, json.loads(config)["world"]) == (0, {"type": "rows", "top_k": 3})


def test_tensorboard_elsewhere_has_a_folder_by_the_name_of_the_run(place: Path, tmp_path: Path):
    check_tracker(lambda: TensorBoard(dir=str(tmp_path / "all")), place)
    assert tensorboard_rows(tmp_path / "all" / "run-001", "reward") == STEPS


def test_wandb_offline_keeps_both_parts_under_one_id(place: Path):
    made = check_tracker(lambda: WandB(project="foxes", mode="offline", tags=("red",)), place)
    first, second = wandb_records(place)
    assert wandb_rows(first, "reward") + wandb_rows(second, "reward") == STEPS
    runs = [r.run for part in (first, second) for r in part if r.HasField("run")]
    assert {(run.run_id, run.project, run.display_name) for run in runs} == {
        (made, "foxes", "run-001")
    }
    assert all("red" in run.tags for run in runs)
    config = {item.key: item.value_json for item in runs[0].config.update}
    assert json.loads(config["world"]) == {"type": "rows", "top_k": 3}
    exits = [r.exit.exit_code for part in (first, second) for r in part if r.HasField("exit")]
    assert exits == [1, 0]
    results = {
        item.key: item.value_json
        for r in second
        if r.HasField("summary")
        for item in r.summary.update
    }
    assert json.loads(results["after/accuracy"]) == 0.5
    (page,) = place.glob("wandb/offline-run-*/files/media/html/samples/*.html")
    assert escape(SAMPLE) in page.read_text()


def test_trackio_keeps_one_run(place: Path):
    made = check_tracker(Trackio, place)
    assert made.startswith("run-001-")
    assert trackio_rows(made, "reward") == STEPS
    assert trackio_rows(made, "after/accuracy") == [(5, 0.5)]
    assert [value["_value"] for _, value in trackio_rows(made, "samples")] == [
        [{"episode": SAMPLE}]
    ]
    without = check_tracker(lambda: Trackio(samples=False), place)
    assert trackio_rows(without, "samples") == []
    (run,) = [run for run in trackio.Api().runs("outfox") if run.name == made]
    assert run.config["world"] == {"type": "rows", "top_k": 3}


@pytest.mark.parametrize("store", ["sqlite:///runs.db", "default"])
def test_mlflow_keeps_one_run(place: Path, store: str, monkeypatch: pytest.MonkeyPatch):
    uri = None if store == "default" else store
    made = check_tracker(lambda: MLflow(uri=uri, experiment="foxes", tags={"by": "me"}), place)
    client = MlflowClient(tracking_uri=uri)
    run = client.get_run(made)
    assert (run.info.status, run.info.run_name, run.data.tags["by"]) == (
        "FINISHED",
        "run-001",
        "me",
    )
    assert run.data.params["world.top_k"] == "3"
    assert mlflow_rows(uri or client.tracking_uri, made, "reward") == STEPS
    assert len(mlflow_rows(uri or client.tracking_uri, made, "rewards/path.py_own/mean")) == 5
    assert run.data.metrics["after/accuracy"] == 0.5
    monkeypatch.setenv("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    stored = client.download_artifacts(made, "samples/step-000000-0.txt")
    assert Path(stored).read_text(encoding="utf-8") == SAMPLE


@pytest.mark.parametrize("name", ["rewards//own/mean", "/own", "rewards/../own.py:f/mean", "a+b"])
def test_mlflow_takes_every_name(place: Path, name: str):
    tracker = MLflow(uri="sqlite:///runs.db")
    check_tracker(lambda: tracker, place)
    tracker.log(9, {name: 1.0}, [])


@pytest.mark.parametrize("made", [MLflow, TensorBoard, partial(WandB, mode="offline")])
def test_none_shows_episodes_that_it_must_not(place: Path, made: Callable[..., Tracker]):
    check_tracker(lambda: made(samples=False), place)
    written = [file for file in place.parent.rglob("*") if file.is_file()]
    assert written
    assert not [file for file in written if b"rise?" in file.read_bytes()]


def test_a_wrong_setting_is_refused_by_its_place():
    wrong = Part(type="wandb", settings={"mode": "offlin"})
    with pytest.raises(ConfigError, match=r"^trackers\.1\.mode: .*Did you mean 'offline'"):
        Parts().resolve("tracker", wrong, where="trackers.1")


def test_the_page_names_every_setting():
    for page in ("trackers.md", "trackers.zh.md"):
        rows = [
            line.split(" | ")
            for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
            if line.startswith("| `")
        ]
        told = {row[0].strip("| `"): set(re.findall(r"`(\w+)`", row[2])) for row in rows}
        for name in built_ins("tracker"):
            settings = {each.name for each in fields(settings_type(Parts().load("tracker", name)))}
            assert settings <= told[name] | {"samples"}, page


# -- a run ----------------------------------------------------------------------------------------
STOPPING = """
import os, sys, time
from outfox.cli import main, run
store, how = run._store, sys.argv.pop(1)
def stopping(system, folder, tracked, lesson, result):
    store(system, folder, tracked, lesson, result)
    if result.step == 2 and how == "killed":
        time.sleep(2)
        os._exit(9)
    if result.step == 2 and how == "stopped":
        raise KeyboardInterrupt
run._store = stopping
main(["train", *sys.argv[1:]])
"""
"""`outfox train` that ends after step 2 as the first argument says."""


def outfox(how: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", STOPPING, how, *words]
    # W&B's service of this process is none of theirs.
    own = {key: value for key, value in os.environ.items() if key != "WANDB_SERVICE"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=own)


def brief(place: Path, trackers: list[Any]) -> list[str]:
    return [
        *(str(RECIPE), "steps=5", "save.every=2", "cold_start.steps=2", "eval.questions=8"),
        *(f"cache.dir={place.parent / 'cache'}", f"run.dir={place}"),
        f"trackers={json.dumps(trackers)}",
    ]


@pytest.mark.parametrize(("how", "code"), [("stopped", 130), ("killed", 9)])
def test_a_run_goes_on_in_all_of_them_at_once(place: Path, how: str, code: int):
    uri = f"sqlite:///{place.parent}/runs.db"
    wandb = {"type": "wandb", "mode": "offline"}
    place.rmdir()
    words = brief(place, ["tensorboard", wandb, "trackio", {"type": "mlflow", "uri": uri}])
    first = outfox(how, *words)
    assert first.returncode == code, first.stderr
    resumed = outfox("on", "--resume", str(place), "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["after"]
    assert "left alone" not in first.stderr + resumed.stderr
    metrics = RunFolder.open(place).metrics()
    rewards = [(row["step"], row["reward"]) for row in metrics if row["stage"] == "reinforce"]
    assert [step for step, _ in rewards] == [0, 1, 2, 3, 4]
    record = json.loads((place / "trackers.json").read_text())
    assert (record["shown"], record["complete"]) == (4, True)
    alone = outfox("on", *brief(place.parent / "alone", []))
    assert alone.returncode == 0, alone.stderr
    assert RunFolder.open(place.parent / "alone").metrics() == metrics
    assert tensorboard_rows(place / "tensorboard", "reward") == [
        (step, pytest.approx(value, abs=1e-6)) for step, value in rewards
    ]
    assert trackio_rows(record["ids"][2], "reward") == rewards
    assert mlflow_rows(uri, record["ids"][3], "reward") == rewards
    shown = [row for part in wandb_records(place) for row in wandb_rows(part, "reward")]
    # Killed, it may lack what it had not written yet: of the steps 0 to 2, but no others.
    lost = [row for row in rewards if row not in shown]
    assert shown == [row for row in rewards if row in shown]
    assert lost == [] if how == "stopped" else {step for step, _ in lost} <= {0, 1, 2}


def test_a_server_that_is_not_there_stops_a_run_before_it_begins(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    place.rmdir()
    refused = outfox("on", *brief(place, [{"type": "mlflow", "uri": "http://127.0.0.1:9"}]))
    assert refused.returncode == 2
    assert "MLflow cannot: MlflowException" in refused.stderr


def test_the_commands_of_the_page_run(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The trainings with the shipped trackers, which `make test` has no packages for."""
    text = (ROOT / "docs" / "trackers.md").read_text(encoding="utf-8")
    for title, block in re.findall(r'^```\w+ title="(.*)"\n((?:.*\n)*?)```$', text, re.MULTILINE):
        (tmp_path / title).write_text(block, encoding="utf-8")
    monkeypatch.setenv("OUTFOX_DOC_TEST", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for line in re.findall(r"^outfox train .*$", text, re.MULTILINE):
        done = outfox("on", *shlex.split(line)[2:])
        assert done.returncode == 0, done.stderr
        assert "left alone" not in done.stderr
