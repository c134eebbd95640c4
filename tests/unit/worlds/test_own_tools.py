"""Tools of the user's in worker processes."""

import asyncio
import gc
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from outfox.core.config import Part
from outfox.core.errors import ConfigError
from outfox.core.isolation.failures import Asked, Failure
from outfox.core.isolation.isolation import Isolation
from outfox.core.isolation.workers import Workers
from outfox.core.parts import Parts
from outfox.core.playing import PLAYING
from outfox.core.protocols import Tool
from outfox.core.types import EpisodeKey, Message, ToolCall, ToolResult
from outfox.testing.worlds import fake_task
from outfox.worlds.environments.tools import ToolEnvironment
from outfox.worlds.tools.own import recipe_tool

TOOLS = '''
import asyncio, os, random, re, sys, time
from outfox import tool
from outfox.core.types import Document, ToolResult, ToolSpec


def shout(text: str) -> str:
    """Say it loud."""
    return text.upper()


@tool(timeout_seconds=.3)
def hangs(how: str) -> str:
    """Misbehave."""
    if how == "loop":
        while True:
            pass
    if how == "regex":
        re.match("(a+)+$", "a" * 64 + "b")
    if how == "sleep":
        time.sleep(1e6)
    return how


def fails(how: str) -> str:
    """Misbehave."""
    if how == "end":
        os._exit(3)
    if how == "memory":
        bytearray(10 << 30)
    if how == "raise":
        raise KeyError("key")
    if how == "exit":
        sys.exit("enough")
    return how


async def waits(text: str) -> list:
    """Look up passages, without haste."""
    await asyncio.sleep(.01)
    return [Document(id="d1", text=text)]


def meddles(items: list[str]) -> str:
    """Change what was given."""
    items.append("more")
    return " ".join(items)


def draws(text: str) -> float:
    """A random number."""
    return random.random()


class Counter:
    """Counts its calls, and misbehaves when it is told to."""

    def __init__(self, *, start: int = 0) -> None:
        self.count = start
        self.spec = ToolSpec(
            name="counter",
            description="Counts.",
            parameters={"type": "object", "properties": {"how": {"type": "string"}}},
        )

    async def __call__(self, call_id, arguments):
        how = arguments.get("how", "")
        self.count += 1
        if how == "end":
            os._exit(1)
        if how == "hang":
            while True:
                pass
        if how == "raise":
            raise ValueError("odd")
        if how == "odd":
            return self.count
        if how == "where":
            return self.said(call_id, str(os.getpid()))
        return self.said(call_id, str(self.count))

    def said(self, call_id, text):
        return ToolResult(tool_call_id=call_id, name="another", content=text)
'''


@dataclass(frozen=True)
class Desk:
    folder: Path
    isolation: Isolation

    def tool(self, name: str, **settings: Any) -> Tool:
        return self.maker(name, **settings)()

    def maker(self, name: str, **settings: Any):
        parts = Parts(folders=(self.folder,))
        part = Part(type=f"own.py:{name}", settings=settings)
        return recipe_tool(parts, part, where="tools.0", isolation=self.isolation)


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "own.py").write_text(TOOLS)
    with Isolation(workers=Workers(seconds=30, memory_gb=0.5, most=2)) as isolation:
        yield Desk(folder=folder, isolation=isolation)


@pytest.mark.parametrize("how", ["loop", "regex", "sleep"])
async def test_a_tool_that_does_not_answer_is_a_timeout_of_its_call_alone(at: Desk, how: str):
    hangs, shout = at.tool("hangs"), at.tool("shout")
    late, loud = await asyncio.gather(hangs("c1", {"how": how}), shout("c2", {"text": "hi"}))
    assert late.status == "timeout"
    assert late.content == late.error == "hangs did not answer within 0.3 seconds."
    assert (late.tool_call_id, late.name) == ("c1", "hangs")
    assert (loud.status, loud.content, loud.tool_call_id) == ("ok", "HI", "c2")


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("end", "fails failed: its process ended with exit code 3"),
        ("memory", "fails failed: it took more memory than user_code.memory_gb"),
        ("raise", "fails failed: KeyError: 'key'"),
        ("exit", "fails failed: SystemExit: enough"),
    ],
)
async def test_a_tool_that_fails_is_a_failure_that_the_policy_reads(at: Desk, how: str, says: str):
    result = await at.tool("fails")("c", {"how": how})
    assert result.status == ("error" if how == "raise" else "crashed")
    assert result.content == says
    assert (await at.tool("fails")("c", {"how": "well"})).content == "well"


async def test_functions_work_as_they_do_in_this_process(at: Desk):
    assert at.tool("shout").spec.description == "Say it loud."
    result = await at.tool("waits")("c", {"text": "found"})
    assert [document.text for document in result.documents] == ["found"]
    wrong = await at.tool("shout")("c", {"loud": "hi"})
    assert wrong.status == "error"
    assert "Field required" in wrong.content


async def test_arguments_cannot_be_changed(at: Desk):
    arguments = {"items": ["one"]}
    assert (await at.tool("meddles")("c", arguments)).content == "one more"
    assert arguments == {"items": ["one"]}


async def test_a_warning_of_a_worker_is_heard_here(at: Desk, caplog):
    await at.tool("fails")("c", {"how": "raise"})
    assert "the tool fails raised KeyError" in caplog.text


async def test_siblings_that_ask_the_same_draw_the_same(at: Desk):
    async def drawn(sibling: int, step: int = 0) -> list[str]:
        PLAYING.set(EpisodeKey(seed=0, step=step, group_id="g", sibling=sibling))
        draws = at.tool("draws")
        return [(await draws("c", {"text": "x"})).content for _ in range(2)]

    first = await asyncio.create_task(drawn(0))
    assert await asyncio.create_task(drawn(1)) == first
    assert first[0] != first[1]
    assert await asyncio.create_task(drawn(0, step=1)) != first


async def test_each_episode_has_an_object_of_its_own(at: Desk):
    make = at.maker("Counter", start=10)
    one, other = make(), make()
    said = [(await each("c", {})).content for each in (one, one, other, one)]
    assert said == ["11", "12", "11", "13"]
    together = await asyncio.gather(*(one(f"c{n}", {}) for n in range(3)))
    assert [result.content for result in together] == ["14", "15", "16"]
    assert {result.name for result in together} == {"counter"}


async def test_an_object_that_is_lost_is_made_anew_as_it_was(at: Desk):
    make = at.maker("Counter")
    ours, theirs = make(), make()
    for each in (ours, ours, theirs):
        await each("c", {})
    pid = int((await theirs("c", {"how": "where"})).content)
    ended = await ours("c", {"how": "end"})
    assert ended.status == "crashed"
    assert "exit code 1" in ended.content
    assert (await ours("c", {})).content == "3"
    assert (await theirs("c", {})).content == "3"
    assert pid != os.getpid()


@pytest.mark.parametrize(
    ("how", "says"), [("raise", "ValueError: odd"), ("odd", "TypeError: it returned int")]
)
async def test_what_a_class_does_wrong_is_an_error_of_its_call(at: Desk, how: str, says: str):
    result = await at.tool("Counter")("c", {"how": how})
    assert result.status == "error"
    assert says in result.content


async def test_an_object_goes_with_its_episode(at: Desk):
    held = "len(__import__('outfox.worlds.tools.own', fromlist='_').__dict__['_HELD'])"

    async def objects() -> int:
        pids: dict[int, int] = {}
        for _ in range(20):
            future = at.isolation.workers.submit(
                "held", eval, f"(__import__('os').getpid(), {held})"
            )
            pid, count = await asyncio.wrap_future(future)
            pids[pid] = count
        return sum(pids.values())

    gc.collect()
    before = await objects()
    counter = at.tool("Counter")
    await counter("c", {})
    assert await objects() > before
    del counter
    gc.collect()
    assert await objects() <= before


async def test_a_stored_timeout_is_said_again_and_not_asked_again(at: Desk):
    key = EpisodeKey(seed=0, step=3, group_id="3/0/t", sibling=1)
    asked = Asked(group_id="3/0/t", sibling=1, part="counter", arguments="{}", number=1)
    at.isolation.failures[asked] = Failure(kind="timeout", why="counter was late.")

    async def episode(key: EpisodeKey) -> list[ToolResult]:
        PLAYING.set(key)
        counter = at.tool("Counter")
        return [await counter("c", {}) for _ in range(3)]

    played = await asyncio.create_task(episode(key))
    assert [result.status for result in played] == ["ok", "timeout", "ok"]
    assert [result.content for result in played] == ["1", "counter was late.", "2"]
    other = EpisodeKey(seed=0, step=3, group_id="3/0/t", sibling=2)
    played = await asyncio.create_task(episode(other))
    assert [result.content for result in played] == ["1", "2", "3"]
    at.isolation.failures.clear()


async def test_an_environment_hands_on_that_the_run_cannot_go_on(at: Desk):
    class Gone:
        spec = at.tool("shout").spec

        async def __call__(self, call_id, arguments):
            raise ConfigError("its file has changed since")

    environment = ToolEnvironment(fake_task(), 0, [Gone()])
    await environment.reset()
    call = ToolCall(id="c", name="shout", arguments={})
    with pytest.raises(ConfigError, match="changed since"):
        await environment.step(Message(role="assistant", content="", tool_calls=(call,)))


def test_built_ins_and_what_is_not_isolated_stay_in_this_process(at: Desk):
    parts = Parts(folders=(at.folder,))
    part = Part(type="own.py:shout")
    made = recipe_tool(parts, part, where="tools.0", isolation=None)()
    assert type(made).__name__ == "FunctionTool"
