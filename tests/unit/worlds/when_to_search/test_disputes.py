"""The kind `disputed`: two undated sources, and a third that settles it."""

import re
from collections import Counter
from functools import cache

import pytest

from outfox.policies.codecs.tags import Tags
from outfox.policies.tiny import build_tokenizer
from outfox.testing.codecs import FakeTokenizer
from outfox.worlds.when_to_search import Noise, Sizes, make
from outfox.worlds.when_to_search.passages import query, query_of
from outfox.worlds.when_to_search.questions import DISPUTED
from outfox.worlds.when_to_search.setting import make_setting

CODEC = Tags(FakeTokenizer(), pauses=True)
WORLDS = [("en", "real"), ("zh", "real"), ("en", "synthetic"), ("zh", "synthetic")]


@cache
def setting_of(language: str, source: str, disputed: bool = True):
    return make_setting(
        language=language, source=source, entities=Sizes(), seed=0, disputed=disputed
    )


@pytest.fixture(params=WORLDS, ids="-".join)
def setting(request):
    return setting_of(*request.param)


@pytest.fixture
def disputes(setting):
    return [question for question in setting.questions if question.kind == DISPUTED]


def found(setting, text: str) -> list[str]:
    return [document.id for document in setting.retriever.search([text], 2)[0]]


def test_each_split_has_enough_and_no_other_kind_goes_short(setting):
    held_out = Counter(q.kind for q in setting.questions if q.held_out)
    train = Counter(q.kind for q in setting.questions if not q.held_out)
    assert min(held_out.values()) >= 100
    assert min(train.values()) >= 70
    assert train[DISPUTED] >= 100


def test_each_search_shows_what_it_should_and_only_the_third_settles(setting, disputes):
    corpus, phrases = setting.corpus, setting.phrases
    for question in disputes:
        [fact] = question.facts
        first, second = corpus.disputing[fact.key]
        settling = corpus.gold[fact.key]
        plain = found(setting, query(phrases, fact))
        assert first in plain
        assert not {second, settling} & set(plain)
        after = found(setting, query_of(phrases, fact.claims.source, fact.entity))
        assert second in after
        assert settling not in after
        assert settling in found(setting, query_of(phrases, fact.claims.settling, fact.entity))
        assert settling not in found(setting, fact.entity)
        assert not {second, settling} & set(found(setting, question.text))


def test_passages_name_the_next_source_and_no_date(setting, disputes):
    text_of = {document.id: document.text for document in setting.corpus.documents}
    for question in disputes:
        [fact] = question.facts
        claims = fact.claims
        first, second = (text_of[identity] for identity in setting.corpus.disputing[fact.key])
        settling = text_of[setting.corpus.gold[fact.key]]
        assert claims.source in first
        assert claims.settling not in first
        assert claims.settling in second
        assert claims.source in second
        assert claims.first in first
        assert claims.second in second
        assert fact.value in settling
        assert not re.search(r"\b(19|20)\d\d\b", first + second + settling)


def test_which_source_is_right_is_a_coin(setting):
    facts = setting.facts.of(role="disputed")
    right = [fact.claims.first == fact.value for fact in facts]
    assert 0.35 < sum(right) / len(right) < 0.65
    for fact in facts:
        assert {fact.claims.first, fact.claims.second} == {fact.value, fact.old}
        assert fact.value != fact.old
        assert fact.claims.source != fact.claims.settling
        assert not fact.known
    assert len({fact.claims.settling for fact in facts}) == len(setting.phrases.sources)


def test_its_labels():
    world = make(source="synthetic", disputed=True)
    setting = setting_of("en", "synthetic")
    by_id = {question.id: question for question in setting.questions}
    tasks = [task for task in world.held_out if task.metadata["kind"] == DISPUTED]
    assert len(tasks) >= 100
    for task in tasks:
        [fact] = by_id[task.task_id].facts
        label = task.metadata
        assert (label["hops"], label["min_calls"]) == (3, 3)
        assert label["solvable"] == "unsolvable"
        assert (label["must_ground"], label["answerable"]) == (False, True)
        assert label["gold_evidence"] == [setting.corpus.gold[fact.key]]
        assert set(setting.corpus.disputing[fact.key]) < set(label["relevant_ids"])
        assert task.reference == {"type": "number", "answer": fact.value}


@pytest.mark.parametrize(("language", "source"), WORLDS)
def test_everything_else_stays_as_it_was(language, source):
    with_, without = (setting_of(language, source, disputed) for disputed in (True, False))
    changed = {fact.key for fact in with_.facts.of(role="disputed")}
    assert not without.facts.of(role="disputed")
    for before, after in zip(without.facts.all, with_.facts.all, strict=True):
        assert (before == after) == (after.key not in changed)
        assert before.held_out == after.held_out
    assert set(without.lexicon.words) < set(with_.lexicon.words)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_word_of_it_needs_bytes(language):
    setting = setting_of(language, "synthetic")
    tokenizer = build_tokenizer([*setting.lexicon.words, *setting.lexicon.names])
    codec = Tags(tokenizer, pauses=True)
    bytes_ = {i for token, i in tokenizer.get_vocab().items() if token.startswith("<0x")}
    world = make(
        language=language,
        source="synthetic",
        disputed=True,
        noise=Noise(error=0.5),
    )
    texts = [document.text for document in setting.corpus.documents]
    for item in world.demonstrations(codec, readings=True).take(0, 400):
        texts += [event.text for event in item.events if event.text]
        texts += [message.content for event in item.events for message in event.messages]
    for text in texts:
        ids = codec.encode(text).tolist()
        assert not bytes_ & set(ids), text
        assert codec.decode(codec.encode(text)) == text


# -- demonstrations -------------------------------------------------------------------------------
@cache
def items(language: str = "en"):
    world = make(
        language=language,
        source="synthetic",
        disputed=True,
    )
    return world.demonstrations(CODEC, readings=True).take(0, 3000)


def written(item) -> str:
    return "".join(event.text for event in item.events if event.owner == "policy")


def played(language: str = "en"):
    """Disputed episodes and drills as (item, source asked) -> by the question's entity."""
    setting = setting_of(language, "synthetic")
    disputed = {q.text: q.facts[0] for q in setting.questions if q.kind == DISPUTED}
    for item in items(language):
        fact = disputed.get(item.opening.messages[-1].content)
        if fact is not None:
            yield item, fact, re.findall(r"<search>(.*?)</search>", written(item))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_episodes_go_on_to_the_next_source_by_the_coin(language):
    setting = setting_of(language, "synthetic")
    lengths = Counter()
    for item, fact, searches in played(language):
        if item.name == "episode":
            sources = (fact.relation, fact.claims.source, fact.claims.settling)
            due = [
                query_of(setting.phrases, setting.phrases.relations.get(s, s), fact.entity)
                for s in sources
            ]
            assert searches == due[: len(searches)]
            lengths[len(searches)] += 1
            expected = {1: fact.claims.first, 2: fact.claims.second, 3: fact.value}
            if searches:
                assert f"<answer>{expected[len(searches)]}</answer>" in written(item)
    count = lengths.total()
    assert count >= 60
    assert 0.3 < lengths[0] / count < 0.7
    assert lengths[3] >= 3


def test_drills_ask_all_three_and_train_whom_to_ask():
    drills = [(item, searches) for item, _, searches in played() if item.name == "reading"]
    whole = [(item, searches) for item, searches in drills if len(searches) == 3]
    assert len(whole) >= 40
    for item, (_, second, third) in whole:
        trained = "".join(event.text for event in item.events if event.trained)
        assert second in trained
        assert third in trained
        seen = [m.content for event in item.events for m in event.messages]
        assert second.split(" of ")[0] in seen[0]
        assert third.split(" of ")[0] in seen[1]
        assert third.split(" of ")[0] not in seen[0]


# -- failures -------------------------------------------------------------------------------------
def retried(error: float):
    world = make(source="synthetic", noise=Noise(error=error))
    failed = setting_of("en", "synthetic").phrases.failed
    for item in world.demonstrations(CODEC).take(0, 3000):
        contents = [m.content for event in item.events for m in event.messages]
        if failed in contents:
            yield item, contents.index(failed)


def test_after_a_failed_search_the_same_or_a_wider_one_or_none_by_the_coin():
    same = wider = none = 0
    for item, place in retried(0.3):
        assert item.name == "episode"
        searches = re.findall(r"<search>(.*?)</search>", written(item))
        thought = re.findall(r"</search><think>(.*?)</think>", written(item))[place]
        assert thought.endswith("missing")
        if place + 1 == len(searches):
            none += 1
        elif searches[place + 1] == searches[place]:
            same += 1
        else:
            wider += 1
    assert same + wider + none >= 100
    assert 0.3 < none / (same + wider + none) < 0.65
    assert 0.25 < same / (same + wider) < 0.75


def test_without_failures_demonstrations_are_as_ever():
    quiet, stale = (
        make(source="synthetic", noise=noise).demonstrations(CODEC).take(100, 64)
        for noise in (Noise(), Noise(stale=0.2, poisoned=0.2))
    )
    assert quiet == stale
    assert not list(retried(0.0))
