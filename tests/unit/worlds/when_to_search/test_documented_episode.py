"""The questions and the episode on the world's page are those of the world with its defaults."""

import re
from pathlib import Path

import pytest

from outfox.worlds.when_to_search import Sizes
from outfox.worlds.when_to_search.questions import DISPUTED, KINDS
from outfox.worlds.when_to_search.setting import make_setting

DOCS = Path(__file__).parents[4] / "docs"
PAGES = [("english", ""), ("chinese", ".zh")]


@pytest.fixture(params=PAGES, ids=["en", "zh"])
def shown(request: pytest.FixtureRequest):
    """A world and its page."""
    name, suffix = request.param
    page = (DOCS / f"world-when-to-search{suffix}.md").read_text(encoding="utf-8")
    return request.getfixturevalue(name), page


def test_the_examples_are_of_their_kinds(shown):
    made, page = shown
    kinds = {question.text: question.kind for question in made.setting.questions}
    examples = re.findall(rf"^\| `({'|'.join(KINDS)})` \| (.+ ?[?？]) \|", page, re.MULTILINE)
    assert [kind for kind, _ in examples] == list(KINDS)
    for kind, text in examples:
        assert kinds.get(text) == kind, text


def test_the_dispute_is_in_the_world_that_has_them(shown):
    made, page = shown
    language = made.world.language
    setting = make_setting(
        language=language, source="real", entities=Sizes(), seed=0, disputed=True
    )
    section = re.split(r"^## ", page, flags=re.MULTILINE)[4]
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", section, re.MULTILINE)
    assert len(rows) == 3
    for query, passage in rows:
        assert passage in [d.text for d in setting.retriever.search([query], 2)[0]]
    entity = rows[0][0].removeprefix(setting.phrases.relations["population"])
    entity = entity.removeprefix(" of ")
    (question, *_) = (q for q in setting.questions if q.facts[0].entity == entity)
    assert question.kind == DISPUTED


def test_the_episode_could_happen(shown):
    made, page = shown
    (block,) = re.findall(r"^```\n([^`]*<think>[^`]*)^```$", page, re.MULTILINE)
    asked, _, written = block.partition("\n")
    assert asked in {question.text for question in made.setting.questions}
    (query,) = re.findall(r"<search>(.*?)</search>", written)
    (passages,) = re.findall(r"<information>(.*?)</information>", written, re.DOTALL)
    found = made.setting.retriever.search([query], 2)[0]
    assert passages.split("\n") == [document.text for document in found]
    *drafts, note = re.findall(r"<think>(.*?)</think>", written)
    assert all(draft.rpartition(" ? ")[0] in made.topics for draft in drafts)
    assert query == drafts[-1].rpartition(" ? ")[0]
    (answer,) = re.findall(r"<answer>(.*?)</answer>", written)
    assert note.endswith(answer)
    assert note.startswith(query)
    assert note in passages
