"""Think blocks of which only the value is trained, cut where a token of the tiny policy begins."""

import random

import pytest

from outfox.core.errors import ContractError
from outfox.policies.codecs.tags import Tags
from outfox.policies.tiny import build_tokenizer
from outfox.worlds.when_to_search.beliefs import Hop
from outfox.worlds.when_to_search.script import Hand, Script


@pytest.fixture(scope="module")
def codec(every) -> Tags:
    lexicon = every.world.lexicon
    return Tags(build_tokenizer([*lexicon.words, *lexicon.names]), pauses=True)


def notes(every) -> list[tuple[str, str]]:
    """Every value of every relation, and every entity with nothing, as (note, value)."""
    facts, phrases, draw = every.setting.facts, every.setting.phrases, random.Random(0)
    entities = {relation: [] for relation in phrases.relations}
    for fact in facts.all:
        entities[fact.relation].append(fact.entity)
    pairs = [
        (Hop(entity=draw.choice(entities[relation]), relation=relation), value)
        for relation in phrases.relations
        for value in facts.classes[relation]
    ]
    pairs += [
        (Hop(entity=entity, relation=relation), phrases.missing)
        for relation, about in entities.items()
        for entity in about
    ]
    return [(hop.note(phrases, value), value) for hop, value in pairs]


def test_an_aside_is_cut_where_its_value_begins(every, codec):
    hand = Hand(codec)
    for note, value in notes(every):
        about, said = hand.split(note, value)
        assert said == f"{value}</think>"
        assert about.rstrip() == f"<think>{note.removesuffix(value).rstrip()}"
        apart = [*codec.encode(about), *codec.encode(said)]
        assert apart == codec.encode(f"<think>{note}</think>").tolist()


def test_the_pieces_of_an_aside_are_what_the_policy_would_write(english):
    lexicon = english.world.lexicon
    codec = Tags(build_tokenizer([*lexicon.words, *lexicon.names]), pauses=True)
    script = Script(Hand(codec), readings=True)
    script.aside("currency of Iraq Zambian Kwacha", "Zambian Kwacha", sure=True)
    script.aside("currency of Iraq missing", "missing", sure=False)
    assert [(event.text, event.owner, event.trained) for event in script.events] == [
        ("<think>currency of Iraq", "policy", False),
        ("Zambian Kwacha</think>", "policy", True),
        ("[sure]", "environment", False),
        ("<think>currency of Iraq", "policy", False),
        ("missing</think>", "policy", True),
    ]
    assert len(codec.encode("Zambian Kwacha</think>")) == 2


def test_a_value_inside_a_token_is_refused():
    hand = Hand(Tags(build_tokenizer(["法国", "首都巴黎", "巴黎"]), pauses=True))
    with pytest.raises(
        ContractError, match="no token of '<think>法国首都巴黎</think>' begins with"
    ):
        hand.split("法国首都巴黎", "巴黎")
