"""Rows and a reward function of another system, from their files to a trained step."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from outfox import cli, train
from outfox.core.results import Value

FACTS = {f"river {n}": f"town {n}" for n in range(8)}
REWARD = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None, least=0.0):
    assert data_source == "rivers" and extra_info["split"] == "train"
    named = float(any(target in solution_str for target in ground_truth["target"]))
    words = min(len(solution_str.split()), 40) / 40
    return {"score": max(least, words), "named": named}
"""
RECIPE = """
world: {type: rows, held_out: .25}
tasks: {path: train.parquet}
corpus: {path: rivers.jsonl}
rubric: reward.yaml
model: {hidden: 32, layers: 1, heads: 2, kv_heads: 2, intermediate: 64, context: 128}
trainer: {type: local, learning_rate: 1e-3}
solvability: {source: world}
rollout: {tasks: 2, group_size: 4, max_turns: 2, max_new_tokens: 24}
eval: {questions: 2, samples: 1, before: false}
steps: 3
"""
NAME = "reward.py:compute_score"
RUBRIC = f"""
version: 1
outcome: {{signal: "{NAME}", graded: true}}
settings: {{"{NAME}": {{adapter: verl, range: [-1, 1], arguments: {{least: -1}}}}}}
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [
        {
            "data_source": "rivers",
            "prompt": [{"role": "user", "content": f"Where is {river}?"}],
            "reward_model": {"style": "rule", "ground_truth": {"target": [town]}},
            "extra_info": {"split": "train", "index": n, "question": f"Where is {river}?"},
        }
        for n, (river, town) in enumerate(FACTS.items())
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    (tmp_path / "rivers.jsonl").write_text(
        "\n".join(
            f'{{"id": "d{n}", "text": "{river} is in {town}."}}'
            for n, (river, town) in enumerate(FACTS.items())
        )
    )
    for name, text in {"reward.py": REWARD, "reward.yaml": RUBRIC, "mine.yaml": RECIPE}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_policy_is_trained_by_a_reward_of_verl_on_rows_of_verl(desk: Path):
    run = train(desk / "mine.yaml", ["run.dir=run"])
    assert run.about["files"].keys() == {str(desk / "reward.py")}
    scored = [group for step in range(3) for group in run.groups(step)]
    played = [pair for g in scored for pair in zip(g.group.trajectories, g.scores, strict=True)]
    assert len(played) == 3 * 2 * 4
    for trajectory, score in played:
        words = min(len(trajectory.policy_text.split()), 40) / 40
        result = score.results[NAME]
        assert isinstance(result, Value)
        assert score.total == result.value == pytest.approx((words + 1) / 2)
        assert result.details is not None
        assert result.details.keys() == {"named"}
    assert len({score.total for _, score in played}) > 1
    assert all(f"rewards/{NAME}/named/mean" in row for row in run.metrics())
    assert f"{NAME}/named" in run.summary()["after"]["by_signal"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("tasks.format=easyr1", "'answer' is missing"),
        ("tasks.format=verll", "Did you mean 'verl'?"),
        ("rubric.settings={'reward.py:compute_score': {adapter: plain}}", "needs data_source"),
    ],
)
def test_what_does_not_fit_is_refused_at_start(
    desk: Path, capsys: pytest.CaptureFixture[str], override: str, message: str
):
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", "mine.yaml", "run.dir=run", override])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not (desk / "run").exists()


def test_code_of_ones_own_can_be_refused(desk: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", "mine.yaml", "run.dir=run", "--no-user-code"])
    assert ended.value.code == 2
    assert "which --no-user-code refuses" in capsys.readouterr().err
