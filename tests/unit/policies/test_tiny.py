"""The tiny policy: whole-name tokens, a prefix-stable chat template, an ordinary model folder."""

import itertools
import logging

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from outfox.core.errors import ConfigError
from outfox.policies.tiny import SPECIAL, build_model, build_tokenizer, save_folder

NAMES = ["Paris", "New York City", "São Tomé", "巴黎", "法国", "首都", "Россия"]
TOKENIZER = build_tokenizer([*NAMES, "York", "New York", "of", "capital", "currency"])


def pieces(text: str) -> list[str]:
    return TOKENIZER.convert_ids_to_tokens(TOKENIZER.encode(text))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "capital of {} ?",
        "{}, of {}.",
        "<answer>{}</answer>",
        "<search>{} currency</search>",
        "[sure]<answer>{}</answer>",
        "<|user|>{} : {}<|end|>",
        "of ({})",
        "[{}]",
        "of\n{}\n{}",
        "法国{}首都{}",
        "法国 : {}",
        "法国 ? {}",
    ],
)
def test_a_name_is_the_same_token_everywhere(name: str, text: str):
    token = TOKENIZER.encode(name)
    assert len(token) == 1
    assert TOKENIZER.encode(text.format(*[name] * 2)).count(token[0]) >= text.count("{}")


def test_the_fewest_tokens_win_and_then_the_longest():
    assert pieces("New York City") == [" New York City"]
    assert pieces("New York currency") == [" New York", " currency"]
    assert pieces("York New York") == [" York", " New York"]


def test_chinese_needs_no_spaces_and_latin_beside_it_none_either():
    assert pieces("法国首都 : 巴黎") == ["法国", "首都", "  : ", "巴黎"]
    assert pieces("法国首都 ? 巴黎") == ["法国", "首都", "  ? ", "巴黎"]
    assert pieces("法国首都 ? Paris") == ["法国", "首都", "  ?", " Paris"]
    assert pieces("Paris currency ? Euro")[:3] == [" Paris", " currency", " ?"]
    assert pieces("法国首都Paris巴黎") == ["法国", "首都", " Paris", "巴黎"]
    assert pieces("capital of 法国") == [" capital", " of", " ", "法国"]


def test_unknown_text_becomes_bytes():
    assert pieces("é") == [" ", "<0xC3>", "<0xA9>"]
    assert TOKENIZER.decode(TOKENIZER.encode("é ὀ 🦊 <0x41>")) == "é ὀ 🦊 <0x41>"


def test_special_tokens_have_the_first_ids_and_survive_in_text():
    assert TOKENIZER.convert_tokens_to_ids(list(SPECIAL)) == list(range(16))
    assert TOKENIZER.pad_token == "<pad>"
    assert TOKENIZER.eos_token == "<|end|>"
    text = "<think>Paris</think><search>of</search><|end|>"
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text
    assert TOKENIZER.decode(TOKENIZER.encode(text), skip_special_tokens=True) == text[:-7]


@pytest.mark.parametrize("word", ["", "  ", "a<think>"])
def test_a_word_must_be_text(word: str):
    with pytest.raises(ConfigError, match="must be text without special tokens"):
        build_tokenizer(["Paris", word])


def test_the_chat_template_is_prefix_stable_and_adds_no_system_prompt():
    messages = [
        {"role": "system", "content": "of"},
        {"role": "user", "content": "capital of 法国 ?"},
        {"role": "assistant", "content": "<search>法国 capital</search>"},
        {"role": "tool", "content": "<information>巴黎</information>"},
        {"role": "assistant", "content": "<answer>巴黎</answer>"},
    ]
    texts = [
        TOKENIZER.apply_chat_template(messages[:count], tokenize=False)
        for count in range(1, len(messages) + 1)
    ]
    assert texts[0] == "<|system|>of<|end|>"
    assert all(after.startswith(before) for before, after in itertools.pairwise(texts))
    opened = TOKENIZER.apply_chat_template(messages[:2], tokenize=False, add_generation_prompt=True)
    assert texts[2].startswith(opened)
    ids = TOKENIZER.apply_chat_template(messages, tokenize=True)["input_ids"]
    assert TOKENIZER.decode(ids) == texts[-1]


def test_the_model_is_a_function_of_its_seed_and_spares_the_global_generator():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, same, other = (build_model(TOKENIZER, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)
    weights = [model.state_dict()["model.layers.0.mlp.up_proj.weight"] for model in (one, same)]
    assert torch.equal(*weights)
    assert not torch.equal(weights[0], other.state_dict()["model.layers.0.mlp.up_proj.weight"])
    assert 0.3e6 < sum(weight.numel() for weight in one.parameters()) < 1.5e6
    assert one.lm_head.weight is one.model.embed_tokens.weight
    assert one.config.num_key_value_heads == 1


@pytest.mark.parametrize("sizes", [{"heads": 3}, {"kv_heads": 3}, {"hidden": 12, "heads": 4}])
def test_sizes_that_do_not_divide_are_refused(sizes: dict[str, int]):
    with pytest.raises(ConfigError, match="heads must divide hidden"):
        build_model(TOKENIZER, **sizes)


def test_the_folder_loads_as_any_other_model(tmp_path, caplog, capfd):
    model = build_model(TOKENIZER, hidden=32, heads=2, layers=1)
    with caplog.at_level(logging.WARNING):
        save_folder(model, TOKENIZER, tmp_path)
        assert capfd.readouterr() == ("", "")
        loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
        tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert caplog.records == []
    text = "<|user|>capital of New York City (巴黎) ?<|end|>"
    assert tokenizer.encode(text) == TOKENIZER.encode(text)
    assert tokenizer.decode(TOKENIZER.encode(text)) == text
    assert tokenizer.chat_template == TOKENIZER.chat_template
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 0)
    ids = torch.tensor([TOKENIZER.encode(text)])
    with torch.no_grad():
        assert torch.equal(loaded(ids).logits, model(ids).logits)
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".bin", ".pt", ".pkl")]
