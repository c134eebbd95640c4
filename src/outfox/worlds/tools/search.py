"""The search tool: a query in, passages out, over any Retriever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from outfox.core.errors import ConfigError
from outfox.core.protocols import Retriever
from outfox.core.seeding import derive, uniforms
from outfox.core.types import JSON, Document, ToolResult, ToolSpec, ToolStatus

MAX_QUERY = 10_000
"""Characters; a longer query is refused with the reason."""
_Answer: TypeAlias = tuple[ToolStatus, str, tuple[Document, ...], str | None]
"""Status, content, documents, error."""


class SearchTool:
    """A Tool over a retriever.

    `delay(call)` in seconds: for tests of timing. `route(draw)`: which retriever answers a call
    that does not fail, by the same draw (at least `error_rate`, below 1); without it `retriever`
    always does.

    Args:
        top_k: Most passages per call.
        show_ids: Each passage begins with `[id]`, so that it can be cited.
        show_titles: Each passage begins with its title.
        longest: Most characters of a passage; the rest is cut off at a blank.
        separator: Stands between passages.
        nothing: Said where no passage matched, with status `empty`.
        failed: Said where the call fails.
        error_rate: Share of calls that fail with status `error`, drawn from the episode's seed and
            the call's number, so that a re-run fails alike.
        name: What the policy calls it.
        description: What the policy is told of it.
    """

    def __init__(
        self,
        retriever: Retriever,
        seed: int = 0,
        delay: Callable[[int], float] | None = None,
        route: Callable[[float], Retriever] | None = None,
        *,
        top_k: int = 2,
        show_ids: bool = False,
        show_titles: bool = False,
        longest: int | None = None,
        separator: str = "\n",
        nothing: str = "Nothing was found.",
        failed: str = "The search failed.",
        error_rate: float = 0.0,
        name: str = "search",
        description: str = "Search for passages that answer a query.",
    ) -> None:
        if top_k < 1:
            raise ConfigError(f"top_k is at least 1; {top_k} would return nothing")
        if longest is not None and longest < 1:
            raise ConfigError(f"a passage shows at least 1 character; longest is {longest}")
        if not 0 <= error_rate <= 1:
            raise ConfigError(f"error_rate is a share between 0 and 1; got {error_rate}")
        self._retriever = retriever
        self._top_k = top_k
        self._show_ids = show_ids
        self._show_titles = show_titles
        self._longest = longest
        self._separator = separator
        self._nothing = nothing
        self._failed = failed
        self._error_rate = error_rate
        self._seed = seed
        self._delay = delay
        self._route = route
        self._calls = 0
        self._spec = _spec(name, description)

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def show(self, documents: Sequence[Document]) -> str:
        """What the policy reads of these documents."""
        return self._separator.join(map(self._line, documents)) or self._nothing

    def find(self, query: str) -> tuple[Document, ...]:
        """What a call that does not fail returns, as far as it is shown."""
        return self._found(self._retriever, query)

    async def __call__(self, call_id: str, arguments: Mapping[str, JSON]) -> ToolResult:
        number, start = self._calls, time.perf_counter()
        self._calls += 1
        if self._delay is not None:
            await asyncio.sleep(self._delay(number))
        status, content, documents, error = self._answer(number, arguments)
        return ToolResult(
            tool_call_id=call_id,
            name=self._spec.name,
            content=content,
            documents=documents,
            status=status,
            error=error,
            seconds=time.perf_counter() - start,
        )

    def _answer(self, number: int, arguments: Mapping[str, JSON]) -> _Answer:
        problem = _problem(arguments)
        if problem is not None:
            return "error", problem, (), problem
        retriever = self._retriever
        if self._error_rate or self._route:
            draw = float(uniforms([derive(self._seed, "search-error")], [number])[0])
            if draw < self._error_rate:
                return "error", self._failed, (), "injected failure"
            retriever = self._route(draw) if self._route else retriever
        documents = self._found(retriever, arguments["query"])
        if not documents:
            return "empty", self._nothing, (), None
        return "ok", self.show(documents), documents, None

    def _found(self, retriever: Retriever, query: str) -> tuple[Document, ...]:
        return tuple(map(self._shortened, retriever.search([query], self._top_k)[0]))

    def _shortened(self, document: Document) -> Document:
        if self._longest is None or len(document.text) <= self._longest:
            return document
        start = document.text[: self._longest + 1]
        return replace(document, text=f"{start.rpartition(' ')[0] or start[:-1]} …")

    def _line(self, document: Document) -> str:
        head = f"[{document.id}] " if self._show_ids else ""
        title = f"{document.title}: " if self._show_titles and document.title else ""
        return f"{head}{title}{document.text}"


part = SearchTool


@lru_cache(maxsize=64)  # every episode has a tool of its own, of the same spec
def _spec(name: str, description: str) -> ToolSpec:
    parameters = {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What to look for."}},
        "required": ["query"],
        "additionalProperties": False,
    }
    return ToolSpec(name=name, description=description, parameters=parameters)


def _problem(arguments: Mapping[str, JSON]) -> str | None:
    """What is wrong with the arguments, said to the policy; None where nothing is."""
    unknown = sorted(set(arguments) - {"query"})
    if unknown:
        return f"search takes 'query' only; got {', '.join(unknown)}."
    query = arguments.get("query")
    if not isinstance(query, str):
        return f"search needs a text 'query'; got {type(query).__name__}."
    if not query.strip():
        return "search needs a query that is not empty."
    if len(query) > MAX_QUERY:
        return f"a query holds at most {MAX_QUERY} characters; this one holds {len(query)}."
    return None
