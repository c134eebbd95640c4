"""Every task source, retriever, tool and environment through the public checks."""

from dataclasses import replace

import pytest

from outfox.core.errors import ContractError
from outfox.core.types import Document, Message, Observation, ToolCall, ToolResult
from outfox.testing.worlds import (
    FakeEnvironment,
    FakeRetriever,
    FakeTaskSource,
    FakeTool,
    check_environment,
    check_retriever,
    check_task_source,
    check_tool,
    fake_task,
)
from outfox.worlds.environments.tools import ToolEnvironments
from outfox.worlds.retrieval.bm25 import BM25
from outfox.worlds.tasks.rows import RowTasks
from outfox.worlds.tools.function import tool
from outfox.worlds.tools.search import SearchTool
from outfox.worlds.when_to_search import Noise, Sizes, make
from outfox.worlds.when_to_search.noise import Poisoned, stale_index
from outfox.worlds.when_to_search.setting import make_setting
from outfox.worlds.world import World

TEXTS = ["Lima is in Peru", "Quito is in Ecuador", "Peru is big"]
QUERY = {"query": "Peru"}


@pytest.fixture(scope="module", params=["en", "zh"])
def world(request) -> World:
    return make(language=request.param)


@tool
def echo(query: str) -> str:
    """Say it again."""
    return query


def test_task_sources_keep_the_protocol():
    check_task_source(FakeTaskSource())
    check_task_source(RowTasks([fake_task(n) for n in range(7)]))


def test_retrievers_keep_the_protocol():
    check_retriever(FakeRetriever(TEXTS), "Peru")
    check_retriever(BM25([Document(id=text, text=text) for text in TEXTS]), "Peru")


async def test_tools_keep_the_protocol():
    await check_tool(FakeTool, QUERY)
    await check_tool(lambda: echo, QUERY)
    await check_tool(lambda: SearchTool(FakeRetriever(TEXTS)), QUERY)


async def test_environments_keep_the_protocol():
    await check_environment(FakeEnvironment, fake_task())
    await check_environment(ToolEnvironments(tools=lambda task, seed: [FakeTool()]), fake_task())


async def test_the_built_in_world_keeps_the_protocols(world):
    check_task_source(world.train, count=30)
    await check_environment(world.environment, world.held_out[0])
    check_retriever(world.retriever, world.held_out[0].metadata["entities"][0])


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_noisy_world_keeps_the_protocols(language):
    noise = Noise(error=0.2, stale=0.3, poisoned=0.3)
    world = make(language=language, source="synthetic", disputed=True, noise=noise)
    check_task_source(world.train, count=30)
    task = world.held_out[0]
    await check_environment(world.environment, task)
    [entity, *_] = task.metadata["entities"]
    setting = make_setting(
        language=language, source="synthetic", entities=Sizes(), seed=0, disputed=True
    )
    check_retriever(stale_index(setting), entity)
    check_retriever(Poisoned(setting, (), seed=1), entity)


async def test_noise_is_a_function_of_task_seed_and_call():
    world = make(source="synthetic", noise=Noise(error=0.2, stale=0.3, poisoned=0.3))

    async def played(seed: int) -> list[tuple[ToolResult, ...]]:
        seen: list[tuple[ToolResult, ...]] = []
        for task in world.held_out[:6]:
            environment = world.environment(task, seed)
            await environment.reset()
            for _ in range(5):
                arguments = {"query": task.metadata["entities"][0]}
                calls = tuple(
                    ToolCall(id=str(number), name="search", arguments=arguments)
                    for number in range(3)
                )
                message = Message(role="assistant", content="", tool_calls=calls)
                results = (await environment.step(message)).results
                seen.append(tuple(replace(result, seconds=0.0) for result in results))
        return seen

    first = await played(1)
    assert first == await played(1)
    assert first != await played(2)


def test_the_check_finds_a_source_with_memory():
    class Drawn(FakeTaskSource):
        calls = 0

        def take(self, step, count):
            self.calls += 1
            return super().take(step + self.calls, count)

    with pytest.raises(ContractError, match="other tasks the second time"):
        check_task_source(Drawn())


def test_the_check_finds_a_reference_that_is_no_json():
    source = FakeTaskSource()
    source._tasks = (fake_task(0, kinds=("a", "b")),)
    with pytest.raises(ContractError, match="survives a round trip"):
        check_task_source(source)


def test_the_check_finds_a_retriever_that_answers_anything():
    class Eager(FakeRetriever):
        def scores(self, query, top_k):
            return [(document, 0.0) for document in self._documents][:top_k]

    with pytest.raises(ContractError, match="score 0 is no hit"):
        check_retriever(Eager(TEXTS), "Peru")


async def test_the_check_finds_a_tool_that_forgets_the_call():
    class Nameless(FakeTool):
        async def __call__(self, call_id, arguments):
            return ToolResult(tool_call_id="", name="search", content="found")

    with pytest.raises(ContractError, match="names the call"):
        await check_tool(Nameless, QUERY)


async def test_the_check_finds_an_environment_that_reorders():
    class Reordering(FakeEnvironment):
        async def step(self, message: Message) -> Observation:
            seen = await super().step(message)
            return Observation(
                messages=seen.messages[::-1], results=seen.results[::-1], done=seen.done
            )

    with pytest.raises(ContractError, match="in call order"):
        await check_environment(Reordering, fake_task())


async def test_the_check_finds_an_environment_that_can_be_used_again():
    class Reusable(FakeEnvironment):
        async def reset(self):
            self._opened = False
            return await super().reset()

    with pytest.raises(ContractError, match="reset once"):
        await check_environment(Reusable, fake_task())
