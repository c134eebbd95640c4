from collections import Counter

from outfox.worlds.when_to_search.facts import YEAR, make_facts
from outfox.worlds.when_to_search.passages import make_corpus
from outfox.worlds.when_to_search.synthetic import synthetic_gazetteer


def test_known_facts_are_the_popular_ones_and_few_enough_to_learn(every):
    facts = every.setting.facts
    assert 350 <= sum(fact.known for fact in facts.all) <= 610
    assert not [fact for fact in facts.all if fact.known and fact.role in ("conflict", "removed")]
    assert all(fact.known for fact in facts.of(role="changed"))


def test_each_relation_has_known_and_unknown_facts_but_for_areas_of_cities(every):
    seen = {(fact.relation, fact.known) for fact in every.setting.facts.all}
    relations = every.setting.phrases.relations
    assert seen == {(relation, known) for relation in relations for known in (True, False)}


def test_a_known_city_may_lie_in_a_country_with_an_unknown_currency(english):
    facts = english.setting.facts
    assert [
        city
        for city in facts.all
        if city.relation == "country"
        and city.known
        and (city.value, "currency") in facts.at
        and not facts.at[city.value, "currency"].known
    ]


def test_what_is_taught_is_the_old_value(every):
    for fact in every.setting.facts.of(role="changed"):
        assert fact.taught == fact.old != fact.value
    for fact in every.setting.facts.of(role="plain"):
        assert fact.taught == (fact.value if fact.known else None)


def test_an_earlier_count_differs_from_the_latest(every):
    conflicts = every.setting.facts.of(role="conflict")
    assert len(conflicts) > 250
    assert all(fact.old is not None and fact.old != fact.value for fact in conflicts)


def test_both_splits_have_every_role(every):
    counts = Counter((fact.role, fact.held_out) for fact in every.setting.facts.all)
    assert set(counts) == {
        (role, split)
        for role in ("plain", "changed", "conflict", "removed")
        for split in (True, False)
    }


def test_no_removed_fact_is_told_by_a_passage_on_the_capital(every):
    facts = every.setting.facts
    capitals = [f for f in facts.all if f.relation == "capital" and f.role != "removed"]
    for city in {name for fact in capitals for name in (fact.value, fact.old)}:
        assert city is None or facts.at[city, "country"].role != "removed"


def test_passages_hold_what_they_should(every):
    setting = every.setting
    texts = {document.id: document for document in setting.corpus.documents}
    for fact in setting.facts.all:
        if fact.role == "removed":
            assert fact.key not in setting.corpus.gold
            continue
        gold = texts[setting.corpus.gold[fact.key]]
        assert fact.entity in gold.text
        assert fact.value in gold.text
        if fact.role == "changed":
            assert YEAR in gold.text
            assert gold.date == f"{YEAR}-01-01"
            assert fact.old in texts[setting.corpus.outdated[fact.key]].text
        if fact.role == "conflict":
            assert gold.date > texts[setting.corpus.outdated[fact.key]].date


def test_the_same_seed_gives_the_same_world():
    gazetteer = synthetic_gazetteer(language="en", countries=30, cities=90, seed=0)
    made = [make_facts(gazetteer, language="en", seed=seed) for seed in (0, 0, 1)]
    passages = [make_corpus(facts, seed=0) for facts in made]
    assert made[0] == made[1] != made[2]
    assert passages[0] == passages[1] != make_corpus(made[0], seed=1)
