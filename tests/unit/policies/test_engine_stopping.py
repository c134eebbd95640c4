"""Stop strings on ids, for tokenizers that spell them in any way."""

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from outfox.core.errors import ConfigError
from outfox.policies.engines.continuous.stopping import Stops
from outfox.policies.tiny import build_model, build_tokenizer

TINY = build_tokenizer(["Paris", "巴黎"])
TINY_STOPS = Stops(TINY, build_model(TINY, hidden=8, heads=2, layers=1, intermediate=8))


def byte_level() -> Stops:
    """Single bytes, and the tokens `</`, `search`, `>.` beside them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {piece: index for index, piece in enumerate([*alphabet, "</", "search", ">."])}
    model = models.BPE(vocab=vocab, merges=[])
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    config = LlamaConfig(
        vocab_size=300, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=2, eos_token_id=[280, 281],
    )  # fmt: skip
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    return Stops(wrapped, LlamaForCausalLM(config))


BYTES = byte_level()
VOCAB = BYTES._tokenizer.get_vocab()


def first_stop(stops: Stops, stop: tuple[str, ...], ids: list[int]) -> tuple[int, str] | None:
    """How many tokens there are when generation ends, and by which string."""
    ending = stops.ending(stop)
    for end in range(1, len(ids) + 1):
        if ids[end - 1] in ending.candidates and (found := stops.stopped(ending, ids[:end])):
            return end, found
    return None


def test_a_stop_string_of_one_token_is_found_by_its_id():
    ids = TINY.encode("<think>Paris</think>Paris")
    assert first_stop(TINY_STOPS, ("</search>", "</think>"), ids) == (3, "</think>")
    assert first_stop(TINY_STOPS, ("</search>",), ids) is None


def test_a_stop_string_spelt_in_bytes_is_found_too():
    spelt = [TINY.convert_tokens_to_ids(f"<0x{byte:02X}>") for byte in b"a</think>b"]
    assert first_stop(TINY_STOPS, ("</think>",), spelt) == (9, "</think>")


def test_a_stop_string_over_several_tokens_ends_with_the_token_that_completes_it():
    ids = [VOCAB[piece] for piece in ("</", "search", ">.", "a")]
    assert first_stop(BYTES, ("</search>",), ids) == (3, "</search>")
    assert first_stop(BYTES, ("</search>.",), ids) == (3, "</search>.")
    assert first_stop(BYTES, ("</answer>",), ids) is None


def test_a_stop_string_in_chinese_may_end_inside_a_token():
    ids = BYTES._encode("答案。好")
    assert len(ids) == 12
    assert first_stop(BYTES, ("案。",), ids) == (9, "案。")


def test_the_string_that_is_complete_first_wins_and_then_the_longest():
    ids = BYTES._encode("abcd")
    assert first_stop(BYTES, ("abcd", "bc"), ids) == (3, "bc")
    assert first_stop(BYTES, ("c", "abc"), ids) == (3, "abc")
    assert first_stop(BYTES, ("d", "bcd", "cd"), ids) == (4, "bcd")


def test_a_stop_string_that_ends_in_a_space_is_found():
    assert first_stop(BYTES, ("b ",), BYTES._encode("ab c")) == (3, "b ")


def test_text_before_the_completion_does_not_count():
    ids = BYTES._encode("</searc")
    assert first_stop(BYTES, ("</search>",), ids) is None
    assert first_stop(BYTES, ("</search>",), BYTES._encode("h>")) is None


def test_eos_comes_from_the_tokenizer_and_from_the_generation_settings():
    assert TINY_STOPS.ending(()).eos == {1}
    assert BYTES.ending(()).eos == BYTES.ending(()).candidates == {280, 281}


def test_an_empty_stop_string_is_refused():
    with pytest.raises(ConfigError, match="must hold text"):
        TINY_STOPS.ending(("a", ""))


def test_a_forbidden_string_is_one_token_or_refused():
    assert TINY_STOPS.token("<search>") == TINY.convert_tokens_to_ids("<search>")
    with pytest.raises(ConfigError, match="must be one token"):
        TINY_STOPS.token("Paris 巴黎")
