"""Fakes of TaskSource, Environment, Tool and Retriever, and a conformance check for each.

check_task_source(source)              raise ContractError at a broken rule
check_retriever(retriever, "query")
await check_tool(make_tool, {"query": "Lyon"})
await check_environment(factory, task)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from outfox.core.errors import ContractError
from outfox.core.protocols import EnvironmentFactory, Retriever, TaskSource, Tool
from outfox.core.types import (
    JSON,
    Document,
    Message,
    Observation,
    Opening,
    Task,
    ToolCall,
    ToolResult,
    ToolSpec,
)


# -- fakes ----------------------------------------------------------------------------------------
def fake_task(number: int = 0, **metadata: JSON) -> Task:
    """A task whose answer is `answer NUMBER`."""
    return Task(
        task_id=f"task-{number}",
        prompt=(Message(role="user", content=f"question {number}"),),
        reference={"type": "text", "answer": f"answer {number}"},
        metadata={"question": f"question {number}", **metadata},
    )


class FakeTaskSource:
    """Tasks 0 to size - 1, again and again."""

    def __init__(self, size: int = 7) -> None:
        self._tasks = tuple(fake_task(number) for number in range(size))

    def take(self, step: int, count: int) -> Sequence[Task]:
        start = step * count
        return tuple(self._tasks[(start + i) % len(self._tasks)] for i in range(count))


class FakeRetriever:
    """Finds the documents whose text holds a word of the query; more such words first."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._documents = tuple(
            Document(id=f"d{number}", text=text) for number, text in enumerate(texts, start=1)
        )

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Document]]:
        return [[document for document, _ in self.scores(query, top_k)] for query in queries]

    def scores(self, query: str, top_k: int) -> list[tuple[Document, float]]:
        words = query.lower().split()
        scored = [
            (document, float(sum(word in document.text.lower().split() for word in words)))
            for document in self._documents
        ]
        hits = sorted((pair for pair in scored if pair[1] > 0), key=lambda pair: -pair[1])
        return hits[: max(top_k, 0)]


class FakeTool:
    """Answers with its text after `delay(call number)` seconds; wrong arguments are an error."""

    def __init__(
        self,
        name: str = "search",
        text: str = "found",
        delay: Callable[[int], float] = lambda number: 0.0,
    ) -> None:
        self.calls: list[Mapping[str, JSON]] = []
        self._text = text
        self._delay = delay
        parameters = {"type": "object", "properties": {"query": {"type": "string"}}}
        self._spec = ToolSpec(name=name, description="A fake.", parameters=parameters)

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def __call__(self, call_id: str, arguments: Mapping[str, JSON]) -> ToolResult:
        self.calls.append(arguments)
        await asyncio.sleep(self._delay(len(self.calls) - 1))
        wrong = None if set(arguments) <= {"query"} else f"unexpected {sorted(arguments)}"
        return ToolResult(
            tool_call_id=call_id,
            name=self._spec.name,
            content=wrong or f"{self._text} {arguments.get('query', '')}".strip(),
            status="error" if wrong else "ok",
            error=wrong,
        )


class FakeEnvironment:
    """Answers every call with its arguments; a message without calls ends it."""

    def __init__(self, task: Task, seed: int) -> None:
        self._task = task
        self._opened = self._done = False
        self._calls = 0

    async def reset(self) -> Opening:
        if self._opened:
            raise ContractError("an environment is used for one episode; make a new one")
        self._opened = True
        return Opening(messages=self._task.prompt)

    async def step(self, message: Message) -> Observation:
        if not self._opened or self._done:
            raise ContractError("step follows reset and precedes the end")
        if not message.tool_calls:
            self._done = True
            return Observation(done=True)
        self._calls += len(message.tool_calls)
        results = tuple(
            ToolResult(
                tool_call_id=call.id, name=call.name, content=json.dumps(dict(call.arguments))
            )
            for call in message.tool_calls
        )
        messages = tuple(
            Message(role="tool", content=r.content, tool_call_id=r.tool_call_id) for r in results
        )
        return Observation(messages=messages, results=results)

    def final(self) -> JSON:
        return {"calls": self._calls}

    async def close(self) -> None:
        self._done = True


# -- conformance ----------------------------------------------------------------------------------
def check_task_source(source: TaskSource, *, count: int = 5) -> None:
    """`take` gives exactly `count` tasks, each with a prompt, and is pure in its arguments."""
    first = [tuple(source.take(step, count)) for step in range(3)]
    for step in (2, 0, 1):
        again = tuple(source.take(step, count))
        _demand(len(again) == count, f"take({step}, {count}) gives {count} tasks, not {len(again)}")
        _demand(again == first[step], f"take({step}, {count}) gave other tasks the second time")
    for task in (task for tasks in first for task in tasks):
        _demand(bool(task.task_id), "a task has an id")
        _demand(bool(task.prompt), f"task {task.task_id} has a prompt")
        _demand_json(task.reference, f"the reference of {task.task_id}")
        _demand_json(dict(task.metadata), f"the metadata of {task.task_id}")


def check_retriever(retriever: Retriever, query: str) -> None:
    """`query` finds something; results are stable, ranked, within top_k, without repeats."""
    found = retriever.scores(query, 3)
    _demand(bool(found), f"the query {query!r} finds a document")
    _demand(found == retriever.scores(query, 3), "the same query gives the same documents")
    values = [score for _, score in found]
    _demand(values == sorted(values, reverse=True), f"scores fall; got {values}")
    _demand(min(values) > 0, f"a document with score 0 is no hit; got {values}")
    ids = [document.id for document, _ in retriever.scores(query, 10**6)]
    _demand(len(ids) == len(set(ids)), "no document is returned twice")
    _demand([d.id for d in retriever.search([query], 2)[0]] == ids[:2], "search agrees with scores")
    _demand(retriever.search([], 2) == [], "no queries, no results")
    for awkward in ("", " ", "\u3000", "🦊", "x" * 10_000):
        hits = retriever.search([awkward, query], 2)
        _demand(len(hits) == 2, f"one result list per query, also with {awkward[:9]!r}")
        _demand([d.id for d in hits[1]] == ids[:2], "queries do not disturb each other")
    _demand(retriever.search([query], 0) == [[]], "top_k 0 finds nothing")


async def check_tool(make_tool: Callable[[], Tool], arguments: Mapping[str, JSON]) -> None:
    """`arguments` succeed; wrong ones are a readable error; results name call and tool."""
    tool, other = make_tool(), make_tool()
    spec = tool.spec
    _demand(bool(spec.name) and bool(spec.description), "a tool has a name and a purpose")
    _demand_json(dict(spec.parameters), f"the parameters of {spec.name}")
    _demand(spec.parameters.get("type") == "object", "parameters are the schema of an object")
    result = await tool("call-1", arguments)
    _demand(result.status in ("ok", "empty"), f"{spec.name} failed: {result.error}")
    _demand(result.tool_call_id == "call-1", "a result names the call that it answers")
    _demand(result.name == spec.name, "a result names its tool")
    again = await other("call-1", arguments)
    same = replace(again, seconds=0.0) == replace(result, seconds=0.0)
    _demand(same, "a fresh tool gives the same result to the same first call")
    wrong = await tool("call-2", {**arguments, "no such argument": 1})
    _demand(wrong.status == "error", f"an unknown argument is an error, not {wrong.status}")
    _demand(bool(wrong.content) and bool(wrong.error), "an error says what is wrong")


async def check_environment(factory: EnvironmentFactory, task: Task) -> None:
    """One episode: opened once, every call answered in order, ended by an answer, then over."""
    environment = factory(task, 1)
    opening = await environment.reset()
    _demand(bool(opening.messages), "an environment opens with messages")
    await _demand_raises(environment.reset(), "an environment is reset once")
    calls = tuple(
        ToolCall(id=f"call-{number}", name=name, arguments={"query": "Lyon"})
        for number, name in enumerate(
            [*(spec.name for spec in opening.tools), "no such tool", "no such tool"]
        )
    )
    seen = await environment.step(Message(role="assistant", content="", tool_calls=calls))
    _demand(not seen.done, "a call does not end the episode")
    ids = [call.id for call in calls]
    _demand([r.tool_call_id for r in seen.results] == ids, "results come in call order")
    _demand([m.tool_call_id for m in seen.messages] == ids, "one tool message per call, in order")
    end = await environment.step(Message(role="assistant", content="an answer"))
    _demand(end.done, "a message without calls ends the episode")
    _demand_json(environment.final(), "the final state")
    await _demand_raises(
        environment.step(Message(role="assistant", content="more")), "no step follows the end"
    )
    await environment.close()


async def _demand_raises(awaitable: Awaitable[object], rule: str) -> None:
    try:
        await awaitable
    except ContractError:
        return
    raise ContractError(f"{rule}: ContractError is raised otherwise; nothing was")


def _demand(holds: bool, rule: str) -> None:
    if not holds:
        raise ContractError(f"broken rule: {rule}")


def _demand_json(value: JSON, what: str) -> None:
    try:
        same = json.loads(json.dumps(value, allow_nan=False)) == value
    except (TypeError, ValueError) as error:
        raise ContractError(f"broken rule: {what} is JSON; {error}") from error
    _demand(same, f"{what} survives a round trip through JSON (tuples and other keys do not)")
