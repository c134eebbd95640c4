"""Loading a model: a folder that is none is refused in one line, before any weight is read."""

from pathlib import Path

import pytest
import torch

from outfox.core.errors import ConfigError
from outfox.policies import loading
from outfox.policies.loading import check_source, load
from outfox.policies.tiny import build_model, build_tokenizer, save_folder

TOKENIZER = build_tokenizer(["Paris"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_folder(build_model(TOKENIZER, hidden=32, heads=2, layers=1), TOKENIZER, tmp_path)
    return tmp_path


def test_a_folder_is_loaded_as_saved(folder: Path):
    loaded = load(folder)
    expected = build_model(TOKENIZER, hidden=32, heads=2, layers=1)
    assert not loaded.model.training
    assert loaded.tokenizer.encode("Paris") == TOKENIZER.encode("Paris")
    for name, weight in expected.state_dict().items():
        assert torch.equal(weight, loaded.model.state_dict()[name])


def test_the_type_of_weights_can_be_chosen(folder: Path):
    assert load(str(folder), dtype=torch.bfloat16).model.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("missing", "what"),
    [
        ("config.json", "holds its config"),
        ("model.safetensors", "holds its weights"),
        ("tokenizer.json", "holds its tokenizer"),
    ],
)
def test_a_folder_without_a_part_names_it(folder: Path, missing: str, what: str):
    (folder / missing).unlink()
    with pytest.raises(ConfigError, match=what):
        load(folder)


def test_a_gguf_file_is_to_be_converted(tmp_path: Path):
    (tmp_path / "model.Q4_1.gguf").write_bytes(b"GGUF")
    with pytest.raises(ConfigError, match=r"GGUF file: convert that first"):
        load(tmp_path)


@pytest.mark.parametrize("source", ["./nowhere", "/no/such/folder", "~/nowhere", "a/b/c"])
def test_a_path_that_does_not_exist_never_reaches_the_hub(source: str):
    with pytest.raises(ConfigError, match="must exist"):
        load(source)


def test_a_file_is_no_model(folder: Path):
    with pytest.raises(ConfigError, match="is a file"):
        load(folder / "config.json")


def test_a_broken_config_is_one_clear_error(folder: Path):
    (folder / "config.json").write_text('{"model_type": "no-such-architecture"}')
    with pytest.raises(ConfigError, match="No causal language model could be loaded"):
        load(folder)


def test_a_name_that_the_hub_does_not_know_is_one_clear_error(monkeypatch: pytest.MonkeyPatch):
    class Nothing:
        @staticmethod
        def from_pretrained(name: str) -> None:
            raise OSError(f"{name} is not a valid model identifier\nmore lines")

    monkeypatch.setattr(loading, "AutoTokenizer", Nothing)
    assert check_source("owner/name") == "owner/name"
    with pytest.raises(
        ConfigError, match=r"'owner/name': owner/name is not a valid model .*fier\."
    ):
        load("owner/name")
