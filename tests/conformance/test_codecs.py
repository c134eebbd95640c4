"""Every codec through the public check, and the check against codecs that break a rule."""

import dataclasses

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from outfox.core.errors import ContractError
from outfox.core.types import Message
from outfox.policies.codecs.tags import Tags
from outfox.policies.tiny import build_tokenizer
from outfox.testing.codecs import FakeTokenizer, LineCodec, check_codec_contract


def byte_level(*, tags: bool) -> PreTrainedTokenizerFast:
    """A byte-level BPE as large models have it, with or without tags as tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=340,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<s>", "<|im_start|>", "<|im_end|>"],
    )
    text = "<think>a : b</think>\n<search>capital of France</search>\n\n<information>Paris 巴黎"
    tokenizer.train_from_iterator([text] * 8, trainer)
    if tags:
        names = ("think", "search", "answer", "information")
        tokenizer.add_tokens(
            [AddedToken(f"<{s}{n}>", normalized=False) for n in names for s in ("", "/")]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        chat_template=(
            "<s>{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
            "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
        ),
    )


QUESTION = Message(role="user", content="question")
TOKENIZERS = {
    "fake": FakeTokenizer(),
    "fake, tags in pieces": FakeTokenizer(tags=(), pieces=("><", "</", "search>", ">\n", " :")),
    "tiny": build_tokenizer(["France", "Paris", "capital", "question", "法国"]),
    "byte level": byte_level(tags=False),
    "byte level with tags": byte_level(tags=True),
}


@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize("name", TOKENIZERS)
def test_tags_keep_the_protocol(name: str, pauses: bool):
    check_codec_contract(Tags(TOKENIZERS[name], pauses=pauses))


@pytest.mark.parametrize("name", TOKENIZERS)
def test_spaced_tags_keep_the_protocol(name: str):
    check_codec_contract(Tags(TOKENIZERS[name], spaced=True, separator="\n"))


def test_a_codec_without_tags_keeps_the_protocol():
    check_codec_contract(LineCodec())


def test_the_opening_has_one_bos():
    from_template = Tags(byte_level(tags=True)).render([QUESTION])
    assert from_template.token_ids.tolist().count(0) == 1
    assert from_template.token_ids[0] == 0


class Shouting(LineCodec):
    def write(self, action, thought=""):
        return super().write(action, thought).upper()


class Reversing(LineCodec):
    def extend(self, messages, limit=None):
        return super().extend(messages[::-1], limit)

    def render(self, messages, tools):
        tail = [m for m in messages if m.role == "tool"]
        head = [m for m in messages if m.role != "tool"]
        return super().render([*head, *tail[::-1]], tools)


class Rerendering(LineCodec):
    def render(self, messages, tools):
        rendered = super().render(messages, tools)
        if len(messages) == 1:
            return rendered
        return dataclasses.replace(rendered, token_ids=np.flip(rendered.token_ids))


class Overlong(LineCodec):
    def extend(self, messages, limit=None):
        return super().extend(messages)


class Endless(LineCodec):
    stop = ("never",)


class Unfinished(LineCodec):
    def parse(self, text, *, finished=True, after_observation=False):
        return super().parse(text, finished=False)


class Astray(LineCodec):
    def spans(self, token_ids, *, after_observation, continued=False):
        found = super().spans(token_ids, after_observation=False)
        return tuple(dataclasses.replace(span, end=span.end + 1) for span in found)


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (Shouting, "read as it was written"),
        (Reversing, "stay in call order"),
        (Rerendering, "stays a prefix"),
        (Overlong, "exactly the limit"),
        (Endless, "a stop string ends"),
        (Unfinished, "an action or an error"),
        (Astray, "a span lies in its tokens"),
    ],
)
def test_the_check_names_the_broken_rule(broken: type[LineCodec], rule: str):
    with pytest.raises(ContractError, match=rule):
        check_codec_contract(broken())
