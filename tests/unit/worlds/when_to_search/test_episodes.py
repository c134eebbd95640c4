"""The world's environment, played by hand."""

from outfox.core.types import Message, ToolCall
from outfox.worlds.when_to_search import Noise, make
from outfox.worlds.when_to_search.passages import query


def search(text: str) -> Message:
    call = ToolCall(id="call", name="search", arguments={"query": text})
    return Message(role="assistant", content="", tool_calls=(call,))


async def statuses(world, seed: int) -> list[str]:
    environment = world.environment(world.held_out[0], seed)
    await environment.reset()
    return [(await environment.step(search("Peru capital"))).results[0].status for _ in range(50)]


async def test_a_search_returns_two_passages_with_the_gold(every):
    setting = every.setting
    tasks = [task for task in every.world.held_out if task.metadata["kind"] == "unknown"][:20]
    by_id = {question.id: question for question in setting.questions}
    hits = 0
    for task in tasks:
        environment = every.world.environment(task, 1)
        await environment.reset()
        text = query(setting.phrases, by_id[task.task_id].facts[0])
        result = (await environment.step(search(text))).results[0]
        assert len(result.documents) == 2
        assert result.content == "\n".join(document.text for document in result.documents)
        hits += task.metadata["gold_evidence"][0] in {document.id for document in result.documents}
    assert hits >= 19


async def test_injected_errors_repeat_with_the_episode_seed():
    world = make(noise=Noise(error=0.3))
    first = await statuses(world, 7)
    assert first == await statuses(world, 7)
    assert first != await statuses(world, 8)
    assert 4 <= first.count("error") <= 30


async def test_without_noise_nothing_fails(english):
    assert set(await statuses(english.world, 7)) == {"ok"}
