import asyncio

import pytest

from outfox.core.errors import ConfigError
from outfox.core.types import Document
from outfox.testing.worlds import FakeRetriever
from outfox.worlds.tools.search import SearchTool

RETRIEVER = FakeRetriever(["Lima is in Peru", "Quito is in Ecuador", "Peru is big"])


class Fixed:
    """A Retriever of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def search(self, queries, top_k):
        return [[self._document] for _ in queries]


async def test_passages_are_shown_and_returned():
    result = await SearchTool(RETRIEVER)("c", {"query": "peru"})
    assert result.content == "Lima is in Peru\nPeru is big"
    assert [document.id for document in result.documents] == ["d1", "d3"]
    assert (result.status, result.tool_call_id, result.name) == ("ok", "c", "search")


async def test_ids_are_shown_where_citations_are_wanted():
    result = await SearchTool(RETRIEVER, show_ids=True, top_k=1)("c", {"query": "peru"})
    assert result.content == "[d1] Lima is in Peru"


async def test_nothing_found_is_said():
    result = await SearchTool(RETRIEVER, nothing="No hit .")("c", {"query": "Mars"})
    assert (result.status, result.content, result.documents) == ("empty", "No hit .", ())


async def test_injected_errors_are_a_function_of_seed_and_call():
    async def statuses(seed: int) -> list[str]:
        tool = SearchTool(RETRIEVER, seed, error_rate=0.3)
        return [(await tool("c", {"query": "peru"})).status for _ in range(200)]

    first = await statuses(1)
    assert first == await statuses(1)
    assert first != await statuses(2)
    assert 30 <= first.count("error") <= 90
    assert set(first) == {"ok", "error"}


async def test_delays_change_when_not_what():
    order: list[str] = []

    async def ask(tool: SearchTool, name: str, query: str) -> str:
        result = await tool(name, {"query": query})
        order.append(name)
        return result.content

    tool = SearchTool(RETRIEVER, 0, lambda call: 0.05 if call == 0 else 0.0)
    contents = await asyncio.gather(ask(tool, "a", "quito"), ask(tool, "b", "lima"))
    assert contents == ["Quito is in Ecuador", "Lima is in Peru"]
    assert order == ["b", "a"]


def test_settings_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="top_k is at least 1"):
        SearchTool(RETRIEVER, top_k=0)
    with pytest.raises(ConfigError, match="error_rate is a share"):
        SearchTool(RETRIEVER, error_rate=1.5)


async def test_titles_are_shown_and_long_passages_cut():
    long = Document(id="d", title="Lima", text="one two three four")
    tool = SearchTool(Fixed(long), show_titles=True, longest=11)
    result = await tool("c", {"query": "q"})
    assert result.content == "Lima: one two …"
    assert result.documents == tool.find("q")
    assert result.documents[0].text == "one two …"
    whole = SearchTool(Fixed(long), show_ids=True, show_titles=True, longest=18)
    assert (await whole("c", {"query": "q"})).content == "[d] Lima: one two three four"
    unbroken = SearchTool(Fixed(Document(id="d", text="abcdef")), longest=3)
    assert unbroken.find("q")[0].text == "abc …"
    with pytest.raises(ConfigError, match="at least 1 character"):
        SearchTool(RETRIEVER, longest=0)
