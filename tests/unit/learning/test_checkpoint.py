"""Checkpoints are whole or absent, and refuse what does not fit."""

from __future__ import annotations

import json

import pytest

from outfox.core.errors import ContractError, DataError
from outfox.core.results import Batch
from outfox.learning.checkpoint import load_checkpoint, read_checkpoint, save_checkpoint
from outfox.testing.learning import FakeTrainer, sample


class Counter:
    """A part with memory."""

    def __init__(self, state=0):
        self.value = state

    def state(self):
        return {"value": self.value}

    def restore(self, state):
        self.value = state["value"]


class Tokenizer:
    def save_pretrained(self, save_directory):
        with open(f"{save_directory}/tokenizer.json", "w") as file:
            file.write("{}")


def save(folder, trainer=None, parts=None, step=3):
    save_checkpoint(
        folder,
        trainer=trainer or FakeTrainer(),
        tokenizer=Tokenizer(),
        cursor={"stage": "reinforce", "step": step},
        parts=parts or {"counter": Counter(5)},
    )


def test_everything_comes_back(tmp_path):
    trainer, folder = FakeTrainer(), tmp_path / "step-000003"
    trainer.update((Batch(micro=((sample("ppaa"),),)),))
    save(folder, trainer, {"budget": Counter(0.1 + 0.2), "table": Counter(["a", None])})
    fresh, budget, table = FakeTrainer(), Counter(), Counter()
    state = load_checkpoint(folder, trainer=fresh, parts={"budget": budget, "table": table})
    assert state.cursor == {"stage": "reinforce", "step": 3}
    assert fresh.weights()["weight"] == trainer.weights()["weight"] == 2
    assert fresh.policy_version == 1
    assert budget.value == 0.1 + 0.2
    assert table.value == ["a", None]


def test_the_folder_holds_the_tokenizer_and_nothing_is_left_beside_it(tmp_path):
    save(tmp_path / "step-000003")
    assert [path.name for path in tmp_path.iterdir()] == ["step-000003"]
    names = {path.name for path in (tmp_path / "step-000003").iterdir()}
    assert names == {"state.json", "tokenizer.json", "trainer.json"}


def test_a_checkpoint_of_the_same_name_is_replaced(tmp_path):
    save(tmp_path / "last", step=3)
    save(tmp_path / "last", step=4)
    assert read_checkpoint(tmp_path / "last").cursor["step"] == 4
    assert len(list(tmp_path.iterdir())) == 1


def test_a_crash_while_saving_leaves_the_old_checkpoint(tmp_path):
    class Crashing(FakeTrainer):
        def save(self, folder):
            raise KeyboardInterrupt

    save(tmp_path / "last", step=3)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "last", Crashing(), step=4)
    assert read_checkpoint(tmp_path / "last").cursor["step"] == 3
    save(tmp_path / "last", step=5)
    assert [path.name for path in tmp_path.iterdir()] == ["last"]


@pytest.mark.parametrize("state", [{1, 2}, float("nan")], ids=["set", "nan"])
def test_a_state_that_is_not_json_is_refused_by_name(tmp_path, state):
    with pytest.raises(ContractError, match="that of 'counter' is not"):
        save(tmp_path / "a", parts={"counter": Counter(state)})
    assert not list(tmp_path.iterdir())


def test_other_parts_than_the_runs_are_refused(tmp_path):
    save(tmp_path / "a")
    trainer = FakeTrainer()
    with pytest.raises(DataError, match="resume with the settings of the run"):
        load_checkpoint(tmp_path / "a", trainer=trainer, parts={})
    with pytest.raises(DataError, match=r"parts with memory \['counter', 'more'\]"):
        load_checkpoint(
            tmp_path / "a", trainer=trainer, parts={"counter": Counter(), "more": Counter()}
        )


def test_damaged_folders_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"a checkpoint folder holds state\.json"):
        read_checkpoint(tmp_path)
    folder = tmp_path / "a"
    save(folder)
    (folder / "trainer.json").write_text("")
    with pytest.raises(DataError, match=r"trainer\.json should have \d+ bytes"):
        read_checkpoint(folder)
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, "format": 2}))
    with pytest.raises(DataError, match="checkpoint format 1 is read here"):
        read_checkpoint(folder)
    (folder / "state.json").write_text('{"cursor": ')
    with pytest.raises(DataError, match="damaged"):
        read_checkpoint(folder)
