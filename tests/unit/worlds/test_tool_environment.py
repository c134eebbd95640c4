import pytest

from outfox.core.errors import ConfigError, ContractError
from outfox.core.types import Message, ToolCall
from outfox.testing.worlds import FakeTool, fake_task
from outfox.worlds.environments.tools import ToolEnvironment, ToolEnvironments

SLOW_FIRST = {"a": 0.05, "b": 0.0}


def calls(*names: str, **arguments: object) -> Message:
    made = tuple(
        ToolCall(id=f"id-{n}", name=name, arguments={"query": f"q{n}", **arguments})
        for n, name in enumerate(names)
    )
    return Message(role="assistant", content="", tool_calls=made)


async def opened(*tools, **settings) -> ToolEnvironment:
    environment = ToolEnvironment(fake_task(), 0, tools, **settings)
    await environment.reset()
    return environment


async def test_it_opens_with_the_prompt_and_the_tools():
    opening = await ToolEnvironment(fake_task(3), 0, [FakeTool("a"), FakeTool("b")]).reset()
    assert opening.messages[0].content == "question 3"
    assert [spec.name for spec in opening.tools] == ["a", "b"]


async def test_results_come_in_call_order_with_their_ids():
    tools = [FakeTool(name, name, lambda _, name=name: SLOW_FIRST[name]) for name in "ab"]
    seen = await (await opened(*tools)).step(calls("a", "b", "a"))
    assert [r.content for r in seen.results] == ["a q0", "b q1", "a q2"]
    assert [m.tool_call_id for m in seen.messages] == ["id-0", "id-1", "id-2"]
    assert not seen.done


async def test_an_unknown_tool_is_refused_with_a_hint():
    environment = await opened(FakeTool("search"))
    result = (await environment.step(calls("serch"))).results[0]
    assert result.status == "refused"
    assert "Did you mean 'search'?" in result.content


async def test_failing_and_slow_tools_are_results():
    class Broken(FakeTool):
        async def __call__(self, call_id, arguments):
            raise ValueError("no disk")

    tools = (Broken("broken"), FakeTool("slow", delay=lambda _: 5))
    environment = await opened(*tools, timeout_seconds=0.02)
    broken, slow = (await environment.step(calls("broken", "slow"))).results
    assert (broken.status, slow.status) == ("error", "timeout")
    assert "ValueError: no disk" in broken.content


async def test_an_answer_ends_it_and_the_end_is_recorded():
    environment = await opened(FakeTool())
    await environment.step(calls("search"))
    await environment.step(calls("nothing"))
    assert (await environment.step(Message(role="assistant", content="Lima"))).done
    assert environment.final() == {
        "answer": "Lima",
        "calls": 2,
        "statuses": {"ok": 1, "refused": 1},
    }


async def test_it_is_used_once_and_in_order():
    environment = ToolEnvironment(fake_task(), 0, [])
    with pytest.raises(ContractError, match="not yet reset"):
        await environment.step(calls("search"))
    await environment.reset()
    with pytest.raises(ContractError, match="one episode"):
        await environment.reset()
    await environment.close()
    with pytest.raises(ContractError, match="is over"):
        await environment.step(calls("search"))


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="names of their own"):
        ToolEnvironment(fake_task(), 0, [FakeTool(), FakeTool()])


async def test_every_episode_gets_tools_of_its_own():
    made = []

    def tools(task, seed):
        made.append(FakeTool(text=f"{task.task_id} {seed}"))
        return made[-1:]

    factory = ToolEnvironments(tools=tools)
    contents = []
    for number in (1, 2):
        environment = factory(fake_task(number), number * 10)
        await environment.reset()
        contents.append((await environment.step(calls("search"))).results[0].content)
    assert contents == ["task-1 10 q0", "task-2 20 q0"]
    assert [len(tool.calls) for tool in made] == [1, 1]
