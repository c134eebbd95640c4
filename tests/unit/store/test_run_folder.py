"""The run folder opens after any crash, refuses what it cannot read, and rewinds."""

from __future__ import annotations

import math
import subprocess
import sys

import duckdb
import numpy as np
import pytest

from outfox.core.errors import ConfigError, DataError
from outfox.core.results import Score, ScoredGroup, TrajectoryCredit, Value
from outfox.core.types import Document, Group, Message, Task
from outfox.store.run_folder import RunFolder, content_hash
from outfox.testing.store import Move, Words, made_up

WORDS = Words()
PASSAGE = Document(id="d1", text="France uses the Euro </information>")


def scored(step, task_id="lyon", siblings=2):
    task = Task(
        task_id=task_id,
        prompt=(Message(role="user", content="What is the currency of France?"),),
        reference={"type": "entity", "answer": "Euro"},
        metadata={"kind": "one_hop_unknown", "solvable": "unsolvable"},
    )
    moves = [
        Move(thought="x : y", reading="[unsure]", query="France currency", documents=(PASSAGE,)),
        Move(thought="France currency : Euro", answer="Euro"),
    ]
    group_id = f"{step}/{task_id}"
    members = tuple(
        made_up(task, moves, words=WORDS, sibling=i, group_id=group_id) for i in range(siblings)
    )
    scores = tuple(
        Score(
            total=1.0 - 0.25 * i,
            outcome="right",
            results={"typed_match": Value(value=1.0, details={"f1": 0.5})},
            parts={"outcome": 1.0, "needless_calls": -0.25 * i},
        )
        for i in range(siblings)
    )
    return ScoredGroup(group=Group(group_id=group_id, trajectories=members), scores=scores)


def fill(run, steps):
    for step in steps:
        run.add_metrics(step, {"reward": 0.5, "kl": math.nan})
        run.add_timings(step, {"rollout": 1.5})
        run.add_event("note", step=step)
        run.add_groups(step, [scored(step)], rubric="abc")
        run.checkpoint(step).mkdir(parents=True)


@pytest.fixture
def run(tmp_path):
    return RunFolder.create(tmp_path / "run", {"name": "when-to-search", "seed": 3, "lr": 1e-6})


def test_config_and_circumstances_come_back(run, tmp_path):
    opened = RunFolder.open(tmp_path / "run")
    assert opened.config == {"name": "when-to-search", "seed": 3, "lr": 1e-6}
    assert opened.about["seed"] == 3
    assert opened.about["versions"]["python"] == sys.version.split()[0]
    assert (run.path / "run.yaml").read_text().startswith("format: 1\n")


def test_user_files_are_kept_as_hashes(tmp_path):
    signal = tmp_path / "signal.py"
    signal.write_text("x = 1")
    first = RunFolder.create(tmp_path / "a", {}, files=[signal]).about["files"]
    signal.write_text("x = 2")
    assert RunFolder.create(tmp_path / "b", {}, files=[signal]).about["files"] != first


def test_same_folder_with_other_config_is_refused_with_the_difference(run):
    with pytest.raises(ConfigError, match=r"seed: 3 -> 4.*--resume"):
        RunFolder.create(run.path, {**run.config, "seed": 4})


def test_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("dear")
    with pytest.raises(ConfigError, match="empty folder"):
        RunFolder.create(tmp_path, {})
    assert (tmp_path / "thesis.tex").read_text() == "dear"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("format: 2\nconfig: {}\n", "newer Outfox"),
        ("config: {}\n", "begins with `format: 1`"),
        ("format: [1\n", "run.yaml is YAML"),
        ("- 1\n", "begins with `format: 1`"),
    ],
)
def test_what_is_no_run_or_newer_is_refused(tmp_path, content, says):
    (tmp_path / "run.yaml").write_text(content)
    with pytest.raises(DataError, match=says):
        RunFolder.open(tmp_path)


def test_folder_without_run_yaml_is_refused(tmp_path):
    with pytest.raises(DataError, match="has none"):
        RunFolder.open(tmp_path)
    with pytest.raises(DataError, match="is no folder"):
        RunFolder.open(tmp_path / "nowhere")


def test_metrics_are_json_also_where_they_are_not_finite(run):
    run.add_metrics(0, {"kl": math.nan, "reward": math.inf, "ok": 0.5})
    row = run.metrics()[0]
    assert row == {"step": 0, "stage": "reinforce", "kl": None, "reward": None, "ok": 0.5}


def test_torn_last_line_is_dropped_by_the_reader_and_by_the_next_writer(run):
    run.add_metrics(0, {"reward": 1})
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 1, "rew')
    assert [row["step"] for row in run.metrics()] == [0]
    run.add_metrics(1, {"reward": 2})
    assert [row["reward"] for row in run.metrics()] == [1, 2]


def test_damaged_middle_line_is_named(run):
    (run.path / "metrics.jsonl").write_text('{"step": 0}\nnonsense\n{"step": 2}\n')
    with pytest.raises(DataError, match=r"metrics\.jsonl:2"):
        run.metrics()


def test_groups_come_back_with_clock_and_scores(run):
    group = scored(4)
    run.add_groups(4, [group], rubric="abc")
    (back,) = run.groups(4)
    assert back.scores == group.scores
    assert back.group.trajectories[0].results == group.group.trajectories[0].results
    assert back.group.trajectories[1].turns[0].completions[0].seconds == 0.25


def test_clock_readings_are_in_timings_only(run):
    run.add_groups(0, [scored(0)], rubric="abc")
    (run.path / "timings.jsonl").unlink()
    (back,) = run.groups(0)
    assert back.group.trajectories[0].turns[0].completions[0].seconds == 0
    assert back.group.trajectories[0].results[0].seconds == 0


def test_rubric_must_be_named_where_two_scored_the_run(run):
    run.add_groups(0, [scored(0)], rubric="abc")
    run.add_groups(0, [scored(0)], rubric="def")
    with pytest.raises(DataError, match="abc, def"):
        run.groups(0)
    assert run.groups(0, rubric="def")


def test_missing_step_and_missing_score_are_data_errors(run):
    run.add_groups(0, [scored(0)], rubric="abc")
    with pytest.raises(DataError, match="no shard"):
        run.groups(1)
    run.add_groups(0, [scored(0, siblings=3)], rubric="def")
    with pytest.raises(DataError, match=r"siblings \[2\]"):
        run.groups(0, rubric="abc")


def test_rewind_drops_everything_after_the_step(run):
    run.add_metrics(30, {"loss": 1}, stage="imitate")
    fill(run, range(4))
    run.add_evaluation("before", -1, [scored(-1)])
    run.add_evaluation("after", 3, [scored(3)])
    run.write_summary({"before": {"accuracy": 0.4}, "after": {"accuracy": 0.9}})
    (run.path / "trajectories" / ".step-000004.parquet.1.tmp").write_text("half")
    for half in (".step-000004.tmp", ".step-000003.old"):
        (run.path / "checkpoints" / half).mkdir()
        (run.path / "checkpoints" / half / ".model.tmp").write_text("half")
    (run.path / "evaluations" / "half").mkdir()
    run.rewind(1)
    assert [(row["stage"], row["step"]) for row in run.metrics()] == [
        ("imitate", 30),
        ("reinforce", 0),
        ("reinforce", 1),
    ]
    assert [row["step"] for row in run.timings()] == [0, 1]
    assert [row["step"] for row in run.events()] == [0, 1]
    assert run.steps() == [0, 1]
    assert run.checkpoints() == [0, 1]
    assert len(list((run.path / "scores" / "abc").iterdir())) == 2
    assert run.evaluations() == ["before"]
    assert run.summary() == {"before": {"accuracy": 0.4}}
    assert not list(run.path.rglob(".*"))
    assert not (run.path / "evaluations" / "half").exists()
    fill(run, [2])
    assert run.steps() == [0, 1, 2]


def test_rewind_to_before_the_first_step_drops_the_cold_start_too(run):
    run.add_stage("imitate", [{"loss": 2.0}, {"loss": 1.0}], [{"update": 0.1}, {"update": 0.1}])
    assert [(row["step"], row["loss"]) for row in run.metrics()] == [(0, 2.0), (1, 1.0)]
    assert len(run.timings()) == 2
    fill(run, [0])
    run.rewind(-1)
    assert run.metrics() == run.timings() == []


def test_rewind_to_before_the_first_step_drops_the_first_evaluation_too(run):
    """The run begins anew: what follows comes in the order of a run that nothing interrupted."""
    run.add_event("evaluation", step=-1, of="before")
    run.add_evaluation("before", -1, [scored(-1)])
    run.rewind(-1)
    assert run.events() == []
    assert run.evaluations() == []


def test_events_of_an_evaluation_that_was_not_stored_are_dropped(run):
    fill(run, [0])
    for name in ("before", "after"):
        run.add_event("evaluation", step={"before": -1, "after": 0}[name], of=name)
    run.add_evaluation("before", -1, [scored(-1)])
    run.rewind(0)
    assert [row["of"] for row in run.events() if row["event"] == "evaluation"] == ["before"]


def test_a_run_that_died_before_it_had_begun_begins_afresh(tmp_path):
    (tmp_path / ".run.yaml.17.tmp").write_text("format: ")
    run = RunFolder.create(tmp_path, {"seed": 3})
    assert RunFolder.open(tmp_path).config == run.config
    assert not list(tmp_path.glob(".*"))


def test_two_runs_write_equal_shards(tmp_path):
    first, second = (RunFolder.create(tmp_path / name, {}) for name in "ab")
    for run in (first, second):
        run.add_groups(0, [scored(0)], rubric="abc", decode=WORDS.decode)
    for file in ("trajectories/step-000000.parquet", "scores/abc/step-000000.parquet"):
        assert (first.path / file).read_bytes() == (second.path / file).read_bytes()


def test_evaluation_keeps_pieces_and_advantages(run):
    group = scored(9)
    length = len(group.group.trajectories[0].ledgers[0])
    credit = TrajectoryCredit(advantages=(np.full(length, 0.5, np.float32),))
    run.add_evaluation("after", 9, [group], credits=[[credit, credit]], decode=WORDS.decode)
    stored = run.evaluation("after")
    assert stored.step == 9
    key = (group.group.group_id, 1)
    assert stored.credits[key].advantages[0].tolist() == [0.5] * length
    ledger = group.group.trajectories[1].ledgers[0]
    assert "".join(stored.pieces[key][0]) == WORDS.decode(ledger.token_ids)
    assert len(stored.pieces[key][0]) == length


def test_second_process_is_told_who_writes(run):
    script = (
        "import sys\nfrom outfox.core.errors import DataError\n"
        "from outfox.store.run_folder import RunFolder\n"
        "try:\n    with RunFolder.open(sys.argv[1]).lock(): print('got it')\n"
        "except DataError as error: print(error)\n"
    )

    def attempt():
        done = subprocess.run(
            [sys.executable, "-c", script, str(run.path)],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    with run.lock():
        assert "being written by process" in attempt()
    assert attempt() == "got it\n"


def test_duckdb_reads_plain_columns_and_joins_scores(run):
    fill(run, range(2))
    query = f"""
        select t.step, t.kind, t.answer, t.calls, s.total, s.outcome, t.policy_tokens,
               json_extract(s.parts, '$.needless_calls')::double as needless,
               len(t.ledgers[1].segments)
        from '{run.path}/trajectories/*.parquet' t
        join '{run.path}/scores/abc/*.parquet' s using (step, group_id, sibling)
        order by all
    """
    rows = duckdb.sql(query).fetchall()
    assert len(rows) == 4
    tokens = scored(0).group.trajectories[0].policy_tokens
    assert rows[0] == (0, "one_hop_unknown", "Euro", 1, 0.75, "right", tokens, -0.25, 6)
    lines = duckdb.sql(f"select step, reward from '{run.path}/metrics.jsonl' order by 1").fetchall()
    assert lines == [(0, 0.5), (1, 0.5)]


def test_content_hash_ignores_key_order_only():
    assert content_hash({"a": 1, "b": [1, 2]}) == content_hash({"b": [1, 2], "a": 1})
    assert content_hash({"a": [1, 2]}) != content_hash({"a": [2, 1]})
