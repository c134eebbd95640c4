# pyright: standard
"""A language model small enough to train on two CPU cores, as an ordinary Hugging Face folder.

    words of a world ─build_tokenizer─▶ tokenizer ─build_model─▶ LFM2 or Llama, 0.3 to 1.5 M

A tiny model learns to copy only where a name is one token and always the same one. Pieces are
therefore whole words and whole names with the space before them (` New York City`), and the
tokenizer supplies that space itself wherever a word can begin without one:

    <search>Paris currency</search>   <search> | ·Paris | ·currency | </search>
    the capital of Paris ?            ·the | ·capital | ·of | ·Paris | ·?
    法国首都是Paris吗                  法国 | 首都 | 是 | ·Paris | 吗

A space is added at the start of every text between special tokens and after a newline, `(`, `[`
or a character of a script written without spaces, unless such a character follows; decoding
removes exactly that space. Encoding and decoding any Unicode text is exact: what no piece covers
becomes bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from transformers import (
    Lfm2Config,
    Lfm2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from outfox.core.errors import ConfigError
from outfox.policies.loading import without_bars

PAD = "<pad>"
END = "<|end|>"
ROLES = ("<|user|>", "<|assistant|>", "<|system|>", "<|tool|>")
TAGS = tuple(
    f"<{slash}{n}>" for n in ("think", "search", "information", "answer") for slash in ("", "/")
)
READINGS = ("[sure]", "[unsure]")
SPECIAL = (PAD, END, *ROLES, *TAGS, *READINGS)
"""Ids 0 to 15, in this order."""

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + (message['content'] or '') + '<|end|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)

# Thai, Lao, Burmese, Khmer, and everything from CJK radicals over kana to full-width forms.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u30ff\u31f0-\u9fff"
    "\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
)
_OPENER = rf"[\n(\[{_UNSPACED}]"
_PRINTABLE = tuple(chr(code) for code in range(33, 127))
_MARKS = tuple(f.format(m) for m in ":?" for f in (" {} ", "  {}", "  {} "))
"""A colon or question mark between a Chinese and another word."""
_NEVER = -1000.0


def build_tokenizer(
    words: Sequence[str], *, context: int = 1024, tools: Sequence[str] = ()
) -> PreTrainedTokenizerFast:
    """A tokenizer in which each of `words` (or names of several words) is one token everywhere.

    `tools`: names that are tags, too; their tokens come last, `search` has its own.

    Of all ways to cut a text into pieces it takes the one with the fewest, ties to the longest
    (Viterbi over a Unigram model of nearly equal scores). Raises ConfigError for an empty word or
    one that holds a special token.
    """
    normalizer = _normalizer()
    pieces = [normalizer.normalize_str(_checked(word)) for word in words]
    pieces += [" ", "\n", " \n", *_PRINTABLE, *(f" {char}" for char in _PRINTABLE)]
    table = dict.fromkeys((*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))), _NEVER)
    # One unit per piece; the square of its length only breaks ties.
    table |= {piece: -1.0 + 1e-6 * len(piece) ** 2 for piece in dict.fromkeys(pieces)}
    # Used only where no space can go to the next word: ` : 1` is ` :` and ` 1`, as after a word.
    table |= dict.fromkeys(_MARKS, -1.01)
    tokenizer = Tokenizer(models.Unigram(list(table.items()), unk_id=0, byte_fallback=True))
    tokenizer.normalizer = normalizer
    own = [f"<{slash}{name}>" for name in tools for slash in ("", "/")]
    tags = tuple(dict.fromkeys((*TAGS, *own)))
    tokenizer.decoder = _decoder((PAD, END, *ROLES, *tags, *READINGS))
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in (PAD, END, *ROLES)])
    tokenizer.add_tokens([AddedToken(tag, normalized=False) for tag in (*tags, *READINGS)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        chat_template=CHAT_TEMPLATE,
        model_max_length=context,
        clean_up_tokenization_spaces=False,
    )


def _checked(word: str) -> str:
    if not word.strip() or any(token in word for token in SPECIAL):
        raise ConfigError(
            f"A word of the tokenizer must be text without special tokens; got {word!r}. Remove it."
        )
    return word.strip()


def _normalizer() -> normalizers.Normalizer:
    """Adds the space before a word; sees one text between special tokens at a time."""
    return normalizers.Sequence(
        [
            normalizers.Prepend(" "),
            normalizers.Replace(Regex(rf"\A (?=[{_UNSPACED}])"), ""),
            normalizers.Replace(Regex(rf"(?<={_OPENER})(?!{_OPENER}|\z)"), " "),
        ]
    )


def _decoder(tokens: Sequence[str]) -> decoders.Decoder:
    """Removes exactly the spaces that `_normalizer` added after one of `tokens`."""
    special = "|".join(re.escape(token) for token in tokens)
    added = rf"(?:\A|(?<={_OPENER}|{special})) "
    return decoders.Sequence(
        [decoders.ByteFallback(), decoders.Fuse(), decoders.Replace(Regex(added), "")]
    )


def build_model(
    tokenizer: PreTrainedTokenizerFast,
    *,
    hidden: int = 128,
    layers: int = 4,
    heads: int = 4,
    kv_heads: int = 1,
    intermediate: int = 256,
    convolutions: int = 0,
    kernel: int = 4,
    context: int = 1024,
    seed: int = 0,
    initializer_range: float = 0.02,
) -> PreTrainedModel:
    """A randomly initialised model with tied embeddings and, by default, one key-value head.

    `layers`: attention layers. Without `convolutions` they make a Llama. With some, so many gated
    short convolutions over `kernel` tokens stand before them (LFM2, Liquid AI 2025): what stands
    next to what is then there from the start, and a policy learns to read and to copy in a third
    of the steps. The weights are a function of the settings and `seed`; torch's global generator
    is left as it was. Raises ConfigError where the sizes do not divide.
    """
    if hidden % heads or heads % kv_heads or (hidden // heads) % 2:
        raise ConfigError(
            "heads must divide hidden into parts of even width, and kv_heads must divide heads; "
            f"got hidden={hidden}, heads={heads}, kv_heads={kv_heads}. Change one of them."
        )
    sizes: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": convolutions + layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": context,
        "initializer_range": initializer_range,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": SPECIAL.index(END),
        "pad_token_id": SPECIAL.index(PAD),
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if not convolutions:
            return LlamaForCausalLM(LlamaConfig(**sizes)).eval()
        kinds = [*["conv"] * convolutions, *["full_attention"] * layers]
        config = Lfm2Config(
            **sizes, layer_types=kinds, conv_L_cache=kernel, block_auto_adjust_ff_dim=False
        )
        return Lfm2ForCausalLM(config).eval()


def save_folder(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path | str
) -> None:
    """Write what `AutoModelForCausalLM` and `AutoTokenizer` load with equal logits and ids."""
    with without_bars():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
