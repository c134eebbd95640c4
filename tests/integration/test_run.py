"""Whole runs: what the folder holds, the same bits twice, resuming, and something is learned."""

import json
import signal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from transformers import AutoModelForCausalLM

from outfox import cli, open_run
from outfox.build import assemble
from outfox.cli import display
from outfox.cli.cold_start import cache_place
from outfox.core.config import load_recipe
from outfox.core.results import Score
from outfox.store.run_folder import RunFolder

RECIPE = Path(__file__).parent / "recipes" / "small.yaml"
MEASURES = {
    *("accuracy", "necessity_precision", "necessity_recall", "over_search", "under_search", "j"),
    *("conflict", "abstain_right", "abstain_false", "wrong", "tokens_per_correct", "calls"),
    *("calls_known", "calls_needed", "reward", "closed_book_recall"),
    *("recovery", "changed_queries", "followed_poison", "verified_conflict"),
}
NOT_YET = {
    *("query_utility", "harmful_query_rate", "stop_late", "stop_premature", "attribution", "aurc"),
}
BRIEF = ["cold_start.steps=2", "cold_start.items=4", "steps=1", "eval.questions=8"]
"""Overrides for runs of about a second, with a cold start of their own."""


def bits(run: RunFolder) -> dict[str, bytes]:
    """Content of every file that two runs with the same seed have in common."""
    files = [path for path in sorted(run.path.rglob("*")) if path.is_file()]
    clocks = {"run.yaml", "run.lock", "timings.jsonl", "report.html"}
    return {
        str(path.relative_to(run.path)): path.read_bytes()
        for path in files
        if path.name not in clocks
    }


def command(*words: str) -> int:
    """Exit code of the command line."""
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    return int(ended.value.code or 0)


# -- the folder -----------------------------------------------------------------------------------
def test_the_run_folder_holds_everything(whole: RunFolder):
    (rubric,) = whole.rubrics()
    steps = [f"step-{step:06d}" for step in range(4)]
    shards = {
        f"{place}/{step}.parquet"
        for place in ("trajectories", f"scores/{rubric}")
        for step in steps
    }
    shards |= {
        f"evaluations/{name}/{what}.parquet"
        for name in ("before", "after")
        for what in ("trajectories", "scores")
    }
    single = {"run.yaml", "metrics.jsonl", "timings.jsonl", "events.jsonl", "summary.json"}
    found = {str(p.relative_to(whole.path)) for p in whole.path.rglob("*") if p.is_file()}
    rest = {name for name in found if not name.startswith("checkpoints/")}
    assert rest == {*single, *shards, "report.html", "run.lock"}
    assert {
        "format",
        "seed",
        "versions",
        "machine",
        "threads",
        "processes",
        "files",
        "config",
    } <= set(whole.about)
    assert whole.checkpoints() == [1, 3]
    held = {p.name for p in whole.checkpoint(3).iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "optimizer.safetensors"} <= held
    assert {"state.json", "trainer.json"} <= held
    assert not [name for name in found if name.endswith((".bin", ".pt", ".pkl", ".tmp"))]


def test_duckdb_joins_trajectories_and_scores(whole: RunFolder):
    at = whole.path
    (row,) = duckdb.sql(
        f"select count(*), count(distinct group_id) from '{at}/trajectories/*.parquet' "
        f"join '{at}/scores/*/*.parquet' using (step, group_id, sibling)"
    ).fetchall()
    assert row == (4 * 4 * 4, 4 * 4)


def test_metrics_and_timings_are_one_line_per_step(whole: RunFolder):
    lines = [(row["stage"], row["step"]) for row in whole.metrics()]
    assert lines == [("imitate", i) for i in range(240)] + [("reinforce", i) for i in range(4)]
    timed = [row for row in whole.timings() if row["stage"] == "reinforce"]
    assert [row["step"] for row in timed] == [0, 1, 2, 3]
    assert {"rollout", "gather", "score", "credit", "update"} <= timed[0].keys()
    assert not {"rollout", "update", "seconds"} & whole.metrics()[-1].keys()


def test_the_summary_has_the_documented_keys_and_no_others(whole: RunFolder):
    summary = whole.summary()
    assert set(summary) == {"recipe", "seed", "steps", "before", "after", "greedy"}
    assert summary["greedy"] is None
    assert (summary["recipe"], summary["seed"], summary["steps"]) == ("small", 0, 4)
    for name in ("before", "after"):
        block = summary[name]
        others = {"intervals", "by_kind", "by_signal", "n", "stops", "settings"}
        assert set(block) == {*MEASURES, *NOT_YET, *others}
        assert {key for key in block if key in NOT_YET and block[key] is not None} == set()
        assert block["n"] == {"questions": 18, "episodes": 18, "failed": 0}
        assert set(block["intervals"]) == {k for k in MEASURES if block[k] is not None}
        assert {"low", "high", "n"} == set(block["intervals"]["accuracy"])
        assert sum(kind["n"] for kind in block["by_kind"].values()) == 18
        assert set(block["by_kind"]["known"]) == {
            "n",
            "accuracy",
            "calls",
            "abstained",
            "intervals",
        }
        assert sum(block["stops"].values()) == pytest.approx(1)


def test_a_greedy_evaluation_follows_where_it_is_wanted(cache: Path, tmp_path: Path, capsys):
    words = [*BRIEF, "eval.greedy=true", "eval.samples=2"]
    folders = [f"run.dir={tmp_path / 'run'}", f"cache.dir={cache}"]
    assert command("train", str(RECIPE), *words, *folders) == 0
    run = open_run(tmp_path / "run")
    assert run.evaluations() == ["after", "before", "greedy"]
    played, greedy = (run.summary()[name]["n"] for name in ("after", "greedy"))
    assert (played["questions"], played["episodes"]) == (8, 16)
    assert (greedy["questions"], greedy["episodes"]) == (8, 8)
    texts = [t.policy_text for g in run.evaluation("greedy").groups for t in g.group.trajectories]
    assert len(texts) == 8
    assert "greedy (temperature 0): acc " in capsys.readouterr().err
    assert "(temperature 0)" in (run.path / "report.html").read_text()


def test_a_checkpoint_is_an_ordinary_model_folder(whole: RunFolder):
    model = AutoModelForCausalLM.from_pretrained(whole.checkpoint(3))
    assert model.config.model_type == "llama"


def test_every_score_is_the_sum_of_its_parts(whole: RunFolder):
    scores: list[Score] = [s for step in range(4) for g in whole.groups(step) for s in g.scores]
    assert len(scores) == 64
    assert len({score.total for score in scores}) > 2
    for score in scores:
        assert sum(score.parts.values()) == pytest.approx(score.total)


# -- the same bits --------------------------------------------------------------------------------
def test_the_same_seed_gives_the_same_bits_with_a_cold_start_from_the_cache(
    whole: RunFolder, go: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    again = go(tmp_path / "again")
    assert "cold start from the cache" in capsys.readouterr().err
    assert bits(again) == bits(whole)


def test_the_same_seed_gives_the_same_bits_and_another_does_not(go: Any, tmp_path: Path):
    first, second, other = (
        go(tmp_path / name, *BRIEF, f"cache.dir={tmp_path / name}-cache", f"seed={seed}")
        for name, seed in (("first", 5), ("second", 5), ("other", 6))
    )
    assert bits(first) == bits(second)
    assert bits(first).keys() == bits(other).keys()
    for name in ("metrics.jsonl", "checkpoints/step-000000/model.safetensors"):
        assert bits(first)[name] != bits(other)[name]


def test_what_makes_the_cold_start_names_its_place_in_the_cache(tmp_path: Path):
    def place(*overrides: str) -> Path:
        return cache_place(assemble(load_recipe(RECIPE, [f"cache.dir={tmp_path}", *overrides])))

    usual = place()
    assert usual.parent == tmp_path / "cold-start"
    for same in ("steps=9", "eval.questions=9", "rubric=outcome_only", "rollout.tasks=2"):
        assert place(same) == usual
    changed = [
        *("seed=1", "cold_start.items=9", "cold_start.trainer.warmup=1", "model.layers=1"),
        *("world.seed=1", "readings={}", "world.demonstrations.search=.4", "trainer.betas=[.8,.9]"),
    ]
    assert len({usual, *(place(each) for each in changed)}) == 1 + len(changed)


# -- resuming -------------------------------------------------------------------------------------
def stop_at(monkeypatch: pytest.MonkeyPatch, name: str, done: int) -> None:
    """Ctrl-C when the bar of that name says how many are done."""

    class Stopping(display.Bar):
        def __init__(self, progress: Any, bar: str, total: int) -> None:
            super().__init__(progress, bar, total)
            self.name = bar

        def to(self, done_now: int, text: str = "") -> None:
            if (self.name, done_now) == (name, done):
                signal.raise_signal(signal.SIGINT)
            super().to(done_now, text)

    monkeypatch.setattr(display, "Bar", Stopping)


@pytest.mark.parametrize(
    ("name", "done", "checkpoints"),
    [
        ("evaluation before", 3, []),
        ("reinforcement", 1, []),
        ("reinforcement", 3, [1]),
        ("reinforcement", 4, [1, 3]),
        ("evaluation after", 3, [1, 3]),
    ],
)
def test_a_stopped_run_that_goes_on_equals_one_that_never_stopped(
    whole: RunFolder, go: Any, tmp_path: Path, capsys, name: str, done: int, checkpoints: list[int]
):
    path = tmp_path / "stopped"
    with pytest.MonkeyPatch.context() as monkeypatch:
        stop_at(monkeypatch, name, done)
        with pytest.raises(KeyboardInterrupt):
            go(path)
    stopped = open_run(path)
    assert stopped.checkpoints() == checkpoints
    assert "after" not in stopped.evaluations()
    assert command("train", "--resume", str(path)) == 0
    if checkpoints:
        assert f"resuming after step {checkpoints[-1]}" in capsys.readouterr().err
    assert bits(stopped) == bits(whole)


def test_a_finished_run_that_is_resumed_stays_as_it_is(
    go: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run = go(tmp_path / "run", *BRIEF)
    before = bits(run)
    capsys.readouterr()
    assert command("train", "--resume", str(run.path), "--json") == 0
    assert bits(run) == before
    assert json.loads(capsys.readouterr().out) == run.summary()


def test_a_run_that_began_elsewhere_goes_on_with_a_warning(go: Any, tmp_path: Path, capsys):
    run = go(tmp_path / "run", *BRIEF)
    file = run.path / "run.yaml"
    type_, torch_ = run.about["machine"]["type"], run.about["versions"]["torch"]
    elsewhere = file.read_text().replace(f"type: {type_}", "type: abacus")
    file.write_text(elsewhere.replace(torch_, "0.4"))
    assert command("train", "--resume", str(run.path)) == 0
    (line,) = [x for x in capsys.readouterr().err.splitlines() if "began elsewhere" in x]
    assert f"machine.type: 'abacus' -> '{type_}'" in line
    assert "versions.torch" in line


def test_a_run_is_written_by_one_process(go: Any, tmp_path: Path, capsys):
    run = go(tmp_path / "run", *BRIEF)
    with run.lock():
        assert command("train", "--resume", str(run.path)) == 2
    (line,) = [x for x in capsys.readouterr().err.splitlines() if x.startswith("outfox: ")]
    assert str(run.path) in line


# -- what is shown --------------------------------------------------------------------------------
def test_a_run_shows_no_bars_of_others_and_each_warning_once(go: Any, tmp_path: Path, capsys):
    """With two cold-start steps nothing parses: in both evaluations, and in every step."""
    go(tmp_path / "run", *BRIEF, "steps=2", "save.every=1", "solvability.source=world")
    told = capsys.readouterr().err
    assert "Writing" not in told
    assert "Loading" not in told
    assert told.count("policy turns parsed") == 1
    assert "evaluation before" in told


# -- learning -------------------------------------------------------------------------------------
ABSTAIN = """rubric={version: 1, outcome: {abstain: {after_call: 1, without_call: 1},
    unanswerable: {abstain_after_call: 1, abstain_without_call: 1}}}"""


def test_the_cold_start_learns_to_imitate(whole: RunFolder):
    nll = [row["imitation/nll"] for row in whole.metrics() if row["stage"] == "imitate"]
    assert nll[0] > 5  # the logarithm of the vocabulary's size is over 6
    assert sum(nll[-20:]) / 20 < nll[0] / 4
    assert whole.summary()["before"]["stops"]["answer"] > 0.5


def test_reinforcement_raises_the_reward_on_held_out_questions(go: Any, tmp_path: Path):
    """Where "unknown" is always the best answer, that is what it learns; the intervals say that
    this was no luck."""
    sizes = ["rollout.tasks=8", "rollout.group_size=8", "eval.questions=48", "eval.samples=2"]
    run = go(tmp_path / "run", "steps=16", *sizes, "solvability.source=world", ABSTAIN)
    before, after = (run.summary()[name] for name in ("before", "after"))
    assert after["intervals"]["reward"]["low"] > before["intervals"]["reward"]["high"] + 0.5
    assert after["intervals"]["abstain_false"]["low"] > 0.5
    assert before["intervals"]["abstain_false"]["high"] < 0.5
    rewards = [row["reward"] for row in run.metrics() if row["stage"] == "reinforce"]
    assert sum(rewards[-4:]) / 4 > sum(rewards[:4]) / 4 + 0.3
