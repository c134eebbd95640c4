"""What the world promises of its questions, measured on all of them."""

from collections import Counter, defaultdict

import pytest

from outfox.core.errors import ConfigError
from outfox.worlds.when_to_search import Noise, make
from outfox.worlds.when_to_search.passages import query
from outfox.worlds.when_to_search.questions import KINDS
from outfox.worlds.world import Supplies


def questions(every, *, held_out: bool):
    return [q for q in every.setting.questions if q.held_out == held_out]


def found(every, text: str) -> list[str]:
    return [document.id for document in every.setting.retriever.search([text], 2)[0]]


def test_every_kind_has_enough_held_out_and_training_questions(every):
    held_out = Counter(q.kind for q in questions(every, held_out=True))
    train = Counter(q.kind for q in questions(every, held_out=False))
    assert set(held_out) == set(train) == set(KINDS)
    assert min(held_out.values()) >= 100
    assert min(train.values()) >= 70
    drawn = every.world.draw(1206, 0)
    assert min(Counter(task.metadata["kind"] for task in drawn).values()) >= 100
    assert len({task.metadata["question"] for task in drawn}) == 1206


def test_training_never_touches_a_held_out_fact(every):
    asked = {fact.key for q in questions(every, held_out=False) for fact in q.facts}
    final = {q.facts[-1].key for q in questions(every, held_out=True)}
    assert not asked & final
    texts = {q.text for q in questions(every, held_out=False)}
    assert not texts & {q.text for q in questions(every, held_out=True)}


def test_the_canonical_query_finds_the_gold_passage_nearly_always(every):
    setting = every.setting
    cues = {"plain": "", "changed": "2026", "conflict": setting.phrases.cue}
    hits = defaultdict(list)
    for fact in setting.facts.all:
        if fact.role != "removed":
            ids = found(every, query(setting.phrases, fact, cues[fact.role]))
            hits[fact.relation].append(setting.corpus.gold[fact.key] in ids)
    assert {r: sum(h) / len(h) for r, h in hits.items() if sum(h) / len(h) < 0.97} == {}
    everything = [hit for some in hits.values() for hit in some]
    assert sum(everything) / len(everything) >= 0.98


def test_no_single_search_shows_both_sides_of_a_conflict(every):
    corpus, phrases = every.setting.corpus, every.setting.phrases
    conflicts = [q for q in every.setting.questions if q.kind == "conflict"]
    for question in conflicts:
        [fact] = question.facts
        assert phrases.cue in question.text
        new, old = corpus.gold[fact.key], corpus.outdated[fact.key]
        plain, cued = (found(every, query(phrases, fact, cue)) for cue in ("", phrases.cue))
        assert old in plain
        assert new not in plain
        assert new in cued
        assert old not in cued


def test_a_changed_fact_is_found_by_the_query_with_the_year(every):
    corpus, phrases = every.setting.corpus, every.setting.phrases
    for question in (q for q in every.setting.questions if q.kind == "changed"):
        assert "2026" in question.text
        ids = found(every, query(phrases, question.facts[0], "2026"))
        assert corpus.gold[question.facts[0].key] in ids


def test_nothing_in_the_corpus_answers_an_unanswerable_question(every):
    corpus, phrases = every.setting.corpus, every.setting.phrases
    for question in (q for q in every.setting.questions if q.kind == "unanswerable"):
        [fact] = question.facts
        assert fact.key not in corpus.gold
        assert set(found(every, query(phrases, fact))) & set(corpus.about[fact.entity])


def test_labels_are_honest(every):
    known = {fact.key for fact in every.setting.facts.all if fact.known}
    ids = {document.id for document in every.setting.corpus.documents}
    by_id = {q.id: q for q in every.setting.questions}
    tasks = [*every.world.held_out, *every.world.train.take(0, 500)]
    for task in tasks:
        question, label = by_id[task.task_id], task.metadata
        hops = [fact.key in known for fact in question.facts]
        plain = all(fact.role == "plain" for fact in question.facts)
        assert label["solvable"] == ("solvable" if all(hops) and plain else "unsolvable")
        assert label["must_ground"] == (label["kind"] == "changed")
        assert label["answerable"] == (label["kind"] != "unanswerable")
        assert (task.reference["answer"] is None) == (not label["answerable"])
        assert (label["min_calls"] == 0) == (label["solvable"] == "solvable")
        assert label["min_calls"] <= label["hops"] <= 2
        assert set(label["gold_evidence"]) <= set(label["relevant_ids"]) <= ids
        assert label["relevant_ids"]
        assert label["entities"] == [fact.entity for fact in question.facts]
        assert task.prompt[-1].content == label["question"]
        assert label["language"] == every.world.language


@pytest.mark.parametrize(
    ("kind", "solvable", "hops", "min_calls"),
    [
        ("known", "solvable", 1, 0),
        ("unknown", "unsolvable", 1, 1),
        ("two_known_known", "solvable", 2, 0),
        ("two_known_unknown", "unsolvable", 2, 1),
        ("two_unknown_known", "unsolvable", 2, 1),
        ("two_unknown_unknown", "unsolvable", 2, 2),
        ("conflict", "unsolvable", 2, 1),
        ("changed", "unsolvable", 1, 1),
        ("unanswerable", "unsolvable", 1, 1),
    ],
)
def test_each_kind_has_its_labels(english, kind, solvable, hops, min_calls):
    for task in english.world.held_out:
        if task.metadata["kind"] == kind:
            label = task.metadata
            assert (label["solvable"], label["hops"], label["min_calls"]) == (
                solvable,
                hops,
                min_calls,
            )


def test_texts_are_short_and_their_words_stand_apart(english):
    for question in english.setting.questions:
        text = question.text
        for fact in question.facts:
            text = text.replace(fact.entity, "X")
        assert text == " ".join(text.split())
        assert text.endswith(" ?")
        assert len(text.split()) <= 12
    for document in english.setting.corpus.documents:
        assert document.text.endswith(" .")


def test_chinese_texts_hold_no_spaces(chinese):
    assert not [q.text for q in chinese.setting.questions if " " in q.text]
    assert not [d.text for d in chinese.setting.corpus.documents if " " in d.text]


def test_examples_of_questions(english):
    texts = {q.text for q in english.setting.questions}
    starts = ("What is the currency of the country of ", "In 2026 , what is the capital of ")
    assert all(any(text.startswith(start) for text in texts) for start in starts)
    assert any(text.startswith("What is the population of the capital of ") for text in texts)
    assert any(text.endswith(" in 2026 ?") for text in texts)


def test_a_system_message_stands_before_the_question():
    task = make(system="Answer briefly.").held_out[0]
    assert [message.role for message in task.prompt] == ["system", "user"]
    assert task.prompt[0].content == "Answer briefly."


def test_settings_that_it_cannot_follow_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"world\.noise holds shares"):
        make(noise=Noise(stale=1.1))
    with pytest.raises(ConfigError, match="leave tasks"):
        make(Supplies(corpus=tmp_path))
    with pytest.raises(ConfigError, match="one of en, zh"):
        make(language="fr")
