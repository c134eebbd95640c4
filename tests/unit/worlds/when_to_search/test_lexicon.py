"""Whole-word tokens cover everything that the world says."""

import pytest

from outfox.policies.codecs.tags import Tags
from outfox.policies.tiny import build_tokenizer


@pytest.fixture(scope="module")
def tokenizer(every):
    lexicon = every.world.lexicon
    return build_tokenizer([*lexicon.words, *lexicon.names])


def test_the_vocabulary_is_small(every, tokenizer):
    assert len(tokenizer) <= 2600
    assert not [word for word in every.world.lexicon.words if " " in word]
    assert not set(every.world.lexicon.words) & set(every.world.lexicon.names)


def test_names_are_one_token_wherever_they_stand(every, tokenizer):
    separator = every.world.lexicon.separator
    for fact in every.setting.facts.all[::7]:
        text = f"<search>{fact.entity}{separator}{every.setting.phrases.cue}</search>"
        assert len(tokenizer(text, add_special_tokens=False)["input_ids"]) == 4


def test_no_text_needs_bytes_and_all_are_short(every, tokenizer):
    codec = Tags(tokenizer, pauses=True)
    bytes_ = {i for token, i in tokenizer.get_vocab().items() if token.startswith("<0x")}

    def tokens(text: str) -> list[int]:
        ids = codec.encode(text).tolist()
        assert not bytes_ & set(ids), text
        assert codec.decode(codec.encode(text)) == text
        return ids

    lengths = [len(tokens(document.text)) for document in every.setting.corpus.documents]
    assert max(lengths) <= 15
    assert sum(length > 12 for length in lengths) / len(lengths) < 0.15
    questions = [len(tokens(question.text)) for question in every.setting.questions[::3]]
    assert max(questions) <= 12
    demonstrations = every.world.demonstrations(codec, readings=True)
    for item in demonstrations.take(0, 300):
        for event in item.events:
            if event.text:
                tokens(event.text)
            for message in event.messages:
                tokens(message.content)
