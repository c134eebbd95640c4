"""Over many calls, each sort of noise has the share that was asked for."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outfox.core.seeding import derive, uniforms
from outfox.worlds.tools.search import SearchTool
from outfox.worlds.when_to_search import Noise, Sizes, make
from outfox.worlds.when_to_search.noise import Poisoned, Routes
from outfox.worlds.when_to_search.passages import query
from outfox.worlds.when_to_search.setting import make_setting

SETTING = make_setting(language="en", source="synthetic", entities=Sizes(), seed=0)
EPISODES, CALLS = 500, 10


@given(
    shares=st.tuples(*[st.floats(0.0, 0.33)] * 3),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_routes_have_their_shares(shares, seed):
    noise = Noise(error=shares[0], stale=shares[1], poisoned=shares[2])
    routes, counts = Routes(SETTING, noise), dict.fromkeys(("stale", "poisoned", "clean"), 0)
    failed = 0
    for episode in range(EPISODES):
        key = derive(seed + episode, "search-error")
        route = routes.of((), episode)
        for draw in uniforms([key] * CALLS, range(CALLS)):
            if draw < noise.error:
                failed += 1
            else:
                counts[sort(route, float(draw))] += 1
    total = EPISODES * CALLS
    assert abs(failed / total - noise.error) < 0.03
    assert abs(counts["stale"] / total - noise.stale) < 0.03
    assert abs(counts["poisoned"] / total - noise.poisoned) < 0.03


def sort(route, draw: float) -> str:
    if route is None or (found := route(draw)) is SETTING.retriever:
        return "clean"
    return "poisoned" if isinstance(found, Poisoned) else "stale"


async def test_five_thousand_calls_of_the_recommended_noise():
    noise = Noise(error=0.1, stale=0.1, poisoned=0.05)
    world = make(source="synthetic", noise=noise)
    tasks = [task for task in world.held_out if task.metadata["kind"] == "unknown"]
    by_id = {question.id: question for question in SETTING.questions}
    populations = [t for t in tasks if by_id[t.task_id].facts[0].relation == "population"][:100]
    seen = dict.fromkeys(("error", "poisoned", "stale", "clean"), 0)
    for number in range(500):
        task = populations[number % 100]
        text = query(SETTING.phrases, by_id[task.task_id].facts[0])
        for tool in world.environment(task, number)._tools.values():
            assert isinstance(tool, SearchTool)
            for _ in range(10):
                result = await tool("call", {"query": text})
                seen[what(result, text)] += 1
    shares = {name: count / 5000 for name, count in seen.items()}
    assert abs(shares["error"] - 0.1) < 0.015
    assert abs(shares["poisoned"] - 0.05) < 0.015
    # A stale search shows where there is an earlier count, which the smallest place has not.
    assert 0.07 < shares["stale"] < 0.115


def what(result, text: str) -> str:
    if result.status == "error":
        return "error"
    if any(document.poison for document in result.documents):
        return "poisoned"
    now = SETTING.retriever.search([text], 2)[0]
    return "clean" if list(result.documents) == now else "stale"
