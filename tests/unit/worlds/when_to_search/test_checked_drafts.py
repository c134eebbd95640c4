"""Drafts that end in the policy's own word on whether they are right."""

from collections import Counter

import pytest

from outfox.core.errors import ConfigError
from outfox.policies.codecs.tags import Tags
from outfox.testing.codecs import FakeTokenizer
from outfox.worlds.when_to_search import Mix, make

CODEC = Tags(FakeTokenizer())


@pytest.fixture(scope="module", params=["en", "zh"])
def language(request):
    return request.param


@pytest.fixture(scope="module")
def checked(language):
    """(world, its items)."""
    world = make(language=language, demonstrations=Mix(checks=True))
    return world, world.demonstrations(CODEC).take(0, 1500)


def drafts(item, made):
    """(key, value, said to be right, is the word trained) of every draft."""
    phrases, written = made.setting.phrases, ""
    for event in item.events:
        if event.messages:
            written = ""
            continue
        for k, piece in enumerate(event.text.split("</think>")):
            written = written.rsplit("<think>", 1)[-1] if k else written
            written += piece
            words = written.rsplit("<think>", 1)[-1]
            ended = k < event.text.count("</think>")
            if ended and " ? " in words:
                topic, said = words.split(" ? ")
                word = next(w for w in phrases.checked if said.endswith(w))
                value = said.removesuffix(word).strip()
                yield made.topics[topic], value, word == phrases.checked[0], event.trained
            written = "" if ended else written


def test_a_draft_is_called_right_where_its_value_was_taught(checked, language, worlds):
    made, said = worlds(language), Counter()
    for item in checked[1]:
        for key, value, right, _ in drafts(item, made):
            fact = made.setting.facts.at.get(key)
            taught = fact.taught if fact is not None else None
            assert right == (value == taught)
            said[taught is not None, right] += 1
    assert said[True, True] > 500
    assert said[True, False] > 300  # another's value behind a fact that is known
    assert said[False, False] > 200
    assert not said[False, True]


def test_no_word_on_a_held_out_question_is_trained(checked, language, worlds):
    """Whether what is unknown there is known must come out by itself."""
    made, trained = worlds(language), Counter()
    held_out = {q.text for q in made.setting.questions if q.held_out}
    for item in checked[1]:
        asked = item.opening.messages[-1].content in held_out
        for key, _, _, kept in drafts(item, made):
            fact = made.setting.facts.at.get(key)
            if fact is None or fact.taught is None:
                assert not (asked and kept)
                trained[asked, kept] += 1
    assert trained[False, True] > 100
    assert trained[True, False] > 50


def test_the_words_are_in_the_lexicon_where_drafts_are_checked(checked, language, worlds):
    made = worlds(language)
    words = set(made.setting.phrases.checked)
    assert words <= set(checked[0].lexicon.words)
    assert not words & set(made.world.lexicon.words)


def test_checks_and_readings_are_refused_together(checked):
    with pytest.raises(ConfigError, match="checked by the policy or read by the environment"):
        checked[0].demonstrations(CODEC, readings=True)
