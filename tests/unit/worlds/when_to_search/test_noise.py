"""Searches that go wrong: what they return, and what stays as it is."""

import pytest

from outfox.core.errors import ConfigError
from outfox.core.types import Message, ToolCall
from outfox.rewards.matchers import Gold, match
from outfox.worlds.when_to_search import Noise, Sizes, make
from outfox.worlds.when_to_search.noise import Poisoned, Routes, stale_index
from outfox.worlds.when_to_search.passages import query, query_of
from outfox.worlds.when_to_search.setting import make_setting


def disputed_setting(language: str):
    return make_setting(
        language=language, source="synthetic", entities=Sizes(), seed=0, disputed=True
    )


def questions(setting, *kinds: str):
    return [q for q in setting.questions if q.kind in kinds]


def asked(setting, question) -> str:
    return query(setting.phrases, question.facts[0], question.cue)


def ids(documents) -> list[str]:
    return [document.id for document in documents]


def call(text: str) -> Message:
    return Message(
        role="assistant",
        content="",
        tool_calls=(ToolCall(id="call", name="search", arguments={"query": text}),),
    )


# -- stale ----------------------------------------------------------------------------------------
def test_a_stale_index_knows_nothing_that_came_later(every):
    setting = every.setting
    stale, corpus = stale_index(setting), setting.corpus
    old = []
    for question in questions(setting, "changed", "conflict")[::7]:
        [fact] = question.facts
        assert corpus.gold[fact.key] not in ids(stale.search([asked(setting, question)], 5)[0])
        plain = ids(stale.search([query(setting.phrases, fact)], 2)[0])
        old.append(corpus.outdated[fact.key] in plain)
    assert sum(old) >= 0.95 * len(old)


def test_a_stale_index_holds_earlier_populations_with_their_year(every):
    setting = every.setting
    stale, amounts = stale_index(setting), {f.value: f.amount for f in setting.facts.all}
    outdated = 0
    populations = [
        q for q in questions(setting, "known", "unknown") if q.facts[0].relation == "population"
    ]
    for question in populations[::5]:
        [fact] = question.facts
        found = stale.search([asked(setting, question)], 2)[0]
        at = {document.id: document for document in found}
        document = at.get(setting.corpus.gold[fact.key])
        now = {d.id: d for d in setting.retriever.search([asked(setting, question)], 2)[0]}
        if document is None or document == now.get(document.id):
            continue
        outdated += 1
        assert document.date < "2019-01-01"
        assert document.date[:4] in document.text
        assert fact.value not in document.text.replace(fact.entity, "")
        assert any(value in document.text for value in amounts)
    assert outdated >= 0.8 * len(populations[::5])


def test_what_does_not_change_is_the_same_in_a_stale_index(english):
    setting, stale = english.setting, stale_index(english.setting)
    for fact in setting.facts.of(role="plain")[::9]:
        if fact.relation in ("currency", "language", "country"):
            text = query(setting.phrases, fact)
            held = setting.corpus.gold[fact.key]
            now, then = (
                {d.id: d.text for d in index.search([text], 2)[0]}
                for index in (setting.retriever, stale)
            )
            assert now.get(held) == then.get(held)


# -- poisoned -------------------------------------------------------------------------------------
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_poisoned_search_asserts_one_wrong_value_of_the_right_class(language):
    setting = disputed_setting(language)
    for question in setting.questions[::3]:
        fact = question.facts[0]
        poisoned = Poisoned(setting, question.facts, seed=5)
        text = asked(setting, question)
        before, after = (r.search([text], 2)[0] for r in (setting.retriever, poisoned))
        assert ids(before) == ids(after)
        [(clean, bad)] = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
        assert bad.poison in setting.facts.classes[fact.relation]
        assert bad.poison not in (fact.value, fact.old)
        assert bad.poison in bad.text
        assert fact.entity in bad.text
        assert (bad.title, bad.source, bad.date) == (clean.title, clean.source, clean.date)


def test_poison_replaces_the_passage_with_the_value(every):
    setting = every.setting
    for question in questions(setting, "known", "unknown", "changed", "conflict")[::9]:
        [fact] = question.facts
        text, gold = asked(setting, question), setting.corpus.gold[fact.key]
        if gold not in ids(setting.retriever.search([text], 2)[0]):
            continue
        found = Poisoned(setting, question.facts, seed=1).search([text], 2)[0]
        [bad] = [document for document in found if document.poison]
        assert bad.id == gold
        assert not [
            document for document in found if fact.value in document.text.split(fact.entity)
        ]


def test_poison_of_a_dispute_falls_on_the_one_who_is_asked(english):
    setting = disputed_setting("en")
    question = questions(setting, "disputed")[0]
    [fact] = question.facts
    first, second = setting.corpus.disputing[fact.key]
    tool = Poisoned(setting, question.facts, seed=1)
    texts = [query(setting.phrases, fact)]
    texts += [
        query_of(setting.phrases, source, fact.entity)
        for source in (fact.claims.source, fact.claims.settling)
    ]
    bad = [[d.id for d in tool.search([text], 2)[0] if d.poison] for text in texts]
    assert bad == [[first], [second], [setting.corpus.gold[fact.key]]]


def test_a_search_for_something_else_is_poisoned_about_what_it_hit(english):
    setting = english.setting
    other = next(f for f in setting.facts.of(role="plain") if f.relation == "currency")
    about = next(q for q in questions(setting, "unknown") if other.entity not in q.text)
    found = Poisoned(setting, about.facts, seed=1).search([query(setting.phrases, other)], 2)[0]
    [bad] = [document for document in found if document.poison]
    assert bad.id == setting.corpus.gold[other.key]
    assert Poisoned(setting, about.facts, seed=1).search(["zzz"], 2) == [[]]


def test_the_poison_is_the_same_within_an_episode_and_differs_between(english):
    setting = english.setting
    question = questions(setting, "unknown")[0]

    def poison(seed: int):
        found = Poisoned(setting, question.facts, seed).search([asked(setting, question)], 2)[0]
        return next(d.poison for d in found if d.poison)

    assert poison(1) == poison(1)
    assert len({poison(seed) for seed in range(20)}) > 5


def test_poison_never_passes_for_the_gold(every):
    setting = every.setting
    by_id = {question.id: question for question in setting.questions}
    for task in every.world.held_out[::7]:
        question = by_id[task.task_id]
        if task.reference["answer"] is None:
            continue
        gold = Gold(type=task.reference["type"], answer=task.reference["answer"])
        for fact in question.facts:
            poisoned = Poisoned(setting, question.facts, seed=3)
            for document in poisoned.search([query(setting.phrases, fact, question.cue)], 2)[0]:
                assert document.poison is None or not match(gold, document.poison).right


async def test_the_policy_does_not_see_what_is_poisoned():
    world = make(noise=Noise(poisoned=1))
    task = next(t for t in world.held_out if t.metadata["kind"] == "unknown")
    environment = world.environment(task, 1)
    await environment.reset()
    result = (await environment.step(call(task.metadata["entities"][0]))).results[0]
    assert [document for document in result.documents if document.poison]
    assert result.content == "\n".join(document.text for document in result.documents)


# -- together -------------------------------------------------------------------------------------
async def test_the_next_call_draws_anew():
    world = make(noise=Noise(error=0.25, stale=0.25, poisoned=0.25))
    task = next(t for t in world.held_out if t.metadata["kind"] == "unknown")
    environment = world.environment(task, 4)
    await environment.reset()
    text = task.metadata["entities"][0]
    contents = [(await environment.step(call(text))).results[0].content for _ in range(30)]
    assert len(set(contents)) >= 3


async def test_errors_fall_on_the_same_calls_with_and_without_other_noise():
    async def failed(noise: Noise) -> list[bool]:
        world = make(noise=noise)
        environment = world.environment(world.held_out[0], 7)
        await environment.reset()
        seen = [(await environment.step(call("Peru"))).results[0] for _ in range(60)]
        return [result.status == "error" for result in seen]

    assert await failed(Noise(error=0.2)) == await failed(Noise(error=0.2, stale=0.3, poisoned=0.3))


def test_without_noise_there_is_no_other_index(english):
    routes = Routes(english.setting, Noise(error=0.5))
    assert routes.of((), 1) is None


def test_held_out_questions_do_not_depend_on_noise(english):
    noisy = make(noise=Noise(error=0.1, stale=0.1, poisoned=0.05))
    assert noisy.held_out == english.world.held_out
    assert noisy.lexicon == english.world.lexicon


@pytest.mark.parametrize(
    "noise", [Noise(error=-0.1), Noise(error=0.6, stale=0.6), Noise(poisoned=1.5)]
)
def test_shares_that_cannot_be_are_refused(noise):
    with pytest.raises(ConfigError, match=r"world\.noise holds shares.*together at most 1; got"):
        make(source="synthetic", noise=noise)
