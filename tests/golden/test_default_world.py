"""Options that are off change nothing: the default world, its items included, is what it was.

A change to the world that is meant to change its items changes the hashes; note why in the commit.
"""

import hashlib

import pytest

from outfox.policies.codecs.tags import Tags
from outfox.testing.codecs import FakeTokenizer
from outfox.worlds.when_to_search import make

ITEMS = {"en": "759e653336560c5e", "zh": "dfbe09293a89a1c0"}
QUESTIONS = {"en": "a4aba9fa373548a1", "zh": "06aba4079936933e"}


def digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_default_world_is_what_it_was(language):
    world = make(language=language, source="synthetic")
    codec = Tags(FakeTokenizer(), pauses=True)
    items = world.demonstrations(codec, readings=True).take(0, 2000)
    questions = (world.held_out, world.train.take(0, 3000), world.lexicon)
    assert (digest(items), digest(questions)) == (ITEMS[language], QUESTIONS[language])
