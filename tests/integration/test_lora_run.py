"""A whole run with an adapter: cold start, reinforcement, death, resume, ranks, what is left."""

from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from outfox import cli, resume, train
from outfox.build import assemble
from outfox.cli import run as running
from outfox.core.config import load_recipe
from outfox.core.errors import ConfigError
from outfox.store.run_folder import RunFolder

RECIPE = Path(__file__).parent / "recipes" / "small.yaml"
BRIEF = (
    *("cold_start.steps=3", "cold_start.items=4", "steps=2", "save.every=1", "eval.questions=8"),
    *("eval.before=false", "rollout.tasks=2", "rollout.group_size=2", "solvability.source=world"),
    *("model.lora={rank: 4}", "algorithm={type: grpo, kl_coef: .01}"),
)


def small(folder: Path, cache: Path, *overrides: str) -> RunFolder:
    return train(RECIPE, [*BRIEF, f"run.dir={folder}", f"cache.dir={cache}", *overrides])


@pytest.fixture(scope="module")
def adapted(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Nothing interrupted it; its cold start is in `cache` beside it."""
    place = tmp_path_factory.mktemp("lora")
    return small(place / "run", place / "cache")


def bits(run: RunFolder) -> dict[str, bytes]:
    names = ("metrics.jsonl", "summary.json", "model/model.safetensors")
    last = [path for path in run.checkpoint(1).iterdir() if path.is_file()]
    return {path.name: path.read_bytes() for path in (*(run.path / n for n in names), *last)}


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft asks for it
def test_a_run_leaves_an_adapter_and_a_merged_model(adapted: RunFolder):
    overrides = [*BRIEF, f"cache.dir={adapted.path.parent / 'cache'}", "model.lora=null"]
    base = assemble(load_recipe(RECIPE, overrides)).model.model
    whole = AutoModelForCausalLM.from_pretrained(adapted.path / "model").eval()
    ids = torch.arange(2, 30)[None]
    with torch.no_grad():
        plain = base(ids).logits
        theirs = PeftModel.from_pretrained(base, str(adapted.checkpoint(1)))(ids).logits
        torch.testing.assert_close(whole(ids).logits, theirs, atol=1e-4, rtol=1e-4)
    assert (plain - theirs).abs().max() > 1e-3
    assert load_file(adapted.checkpoint(1) / "adapter_model.safetensors")
    assert (adapted.path / "model" / "tokenizer.json").is_file()


def test_episodes_are_sampled_with_the_adapter_that_is_trained(adapted: RunFolder):
    rows = [row for row in adapted.metrics() if row["stage"] == "reinforce"]
    seen = [row["sampling/logp_difference/max"] for row in rows]
    assert len(seen) == 2
    assert 0 < max(seen) < 1e-4


def test_a_run_that_died_ends_in_the_same_bits(
    adapted: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Died(Exception):
        pass

    def dying(folder: RunFolder, step: int, values: object) -> None:
        if step == 1:
            raise Died
        before(folder, step, values)

    before = RunFolder.add_metrics
    cache = adapted.path.parent / "cache"
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "add_metrics", dying)
        with pytest.raises(Died):
            small(tmp_path / "run", cache)
    (tmp_path / "run" / ".model.tmp").mkdir()  # What a death within the last writing leaves.
    run = resume(tmp_path / "run")
    assert bits(run) == bits(adapted)
    assert not (run.path / ".model.tmp").exists()


def test_a_death_before_the_merged_model_is_made_up_for(
    adapted: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Died(Exception):
        pass

    def dying(*_: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(running, "export_model", dying)
        with pytest.raises(Died):
            small(tmp_path / "run", adapted.path.parent / "cache")
    assert bits(resume(tmp_path / "run")) == bits(adapted)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("model.lora.rank=0", "greater than 0"),
        ("model.lora.targets=[q_prj]", "Did you mean 'q_proj'"),
        ("model.lora.dropout=.1", "dropout"),
    ],
)
def test_wrong_settings_are_one_line(wrong: str, told: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", str(RECIPE), wrong])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


def test_a_checkpoint_of_an_adapter_is_no_model_to_begin_with(adapted: RunFolder):
    with pytest.raises(ConfigError, match="holds an adapter"):
        assemble(load_recipe(RECIPE, [f"model.path={adapted.checkpoint(1)}"]))
    assemble(load_recipe(RECIPE, [f"model.path={adapted.path / 'model'}"]))
