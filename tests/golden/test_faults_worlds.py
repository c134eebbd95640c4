"""Faults that users of other systems hit: retrieval, tool calls, rows. Each test is the kind."""

import asyncio

import numpy as np
import pytest

from outfox.core.errors import DataError
from outfox.core.results import Score, ScoredGroup
from outfox.core.types import Document, Group, Message, Observation, ToolCall, Trajectory, Turn
from outfox.evaluation.behaviour import behaviour
from outfox.testing.worlds import FakeTool, fake_task
from outfox.worlds.environments.tools import ToolEnvironment
from outfox.worlds.retrieval.bm25 import BM25
from outfox.worlds.tasks.rows import tasks_from_rows
from outfox.worlds.tools.search import SearchTool

RETRIEVER = BM25([Document(id="a", text="Lima is in Peru"), Document(id="b", text="利马在秘鲁")])


def test_no_queries_give_no_results():
    assert RETRIEVER.search([], 2) == []


@pytest.mark.parametrize("top_k", [0, -1])
def test_top_k_below_one_gives_an_empty_list_never_a_wrong_document(top_k):
    assert RETRIEVER.search(["Lima"], top_k) == [[]]


def test_top_k_larger_than_the_corpus_gives_what_there_is():
    assert [d.id for d in RETRIEVER.search(["Lima"], 99)[0]] == ["a"]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("x" * 10_000, []),
        ("Lima " * 2_000, ["a"]),
        ("🦊", []),
        ("秘鲁", ["b"]),
        ("42", []),
        ("", []),
    ],
)
def test_awkward_queries_find_the_right_document_or_none(query, ids):
    assert [d.id for d in RETRIEVER.search([query], 2)[0]] == ids


@pytest.mark.parametrize("query", [5, None, ["Lima"], "", "   ", "x" * 10_001])
async def test_a_query_that_is_none_gets_the_reason(query):
    result = await SearchTool(RETRIEVER)("c", {"query": query})
    assert result.status == "error"
    assert "query" in result.content
    assert result.documents == ()


async def test_no_hit_says_that_nothing_was_found():
    result = await SearchTool(RETRIEVER)("c", {"query": "Mars"})
    assert (result.status, result.content) == ("empty", "Nothing was found.")


async def step(arguments, *tools, name="search"):
    environment = ToolEnvironment(fake_task(), 0, tools or [SearchTool(RETRIEVER)])
    await environment.reset()
    call = ToolCall(id="c", name=name, arguments=arguments)
    message = Message(role="assistant", content="", tool_calls=(call,))
    return environment, (await environment.step(message)).results[0]


@pytest.mark.parametrize("arguments", ['{"query": ', ["Lima"], None, {"q": "Lima"}, {}])
async def test_malformed_arguments_are_an_error_for_the_policy_and_counted_as_failure(arguments):
    environment, result = await step(arguments)
    assert result.status == "error"
    assert result.content
    assert environment.final()["statuses"] == {"error": 1}


async def test_async_and_sync_calls_of_one_turn_keep_order_and_ids():
    tools = [FakeTool("slow", "slow", lambda _: 0.03), FakeTool("quick", "quick")]
    environment = ToolEnvironment(fake_task(), 0, tools)
    await environment.reset()
    calls = tuple(
        ToolCall(id=name, name=name, arguments={"query": "q"}) for name in ("slow", "quick")
    )
    seen = await environment.step(Message(role="assistant", content="", tool_calls=calls))
    assert [(m.tool_call_id, m.content) for m in seen.messages] == [
        ("slow", "slow q"),
        ("quick", "quick q"),
    ]


async def test_a_tool_that_never_answers_does_not_hang_the_episode():
    environment = ToolEnvironment(
        fake_task(), 0, [FakeTool(delay=lambda _: 3600)], timeout_seconds=0.01
    )
    await environment.reset()
    call = ToolCall(id="c", name="search", arguments={})
    message = Message(role="assistant", content="", tool_calls=(call,))
    seen = await asyncio.wait_for(environment.step(message), 5)
    assert seen.results[0].status == "timeout"


@pytest.mark.parametrize(
    "gold", [None, float("nan"), "", " ", [], [["a"]], [1, 2], np.array([]), {"target": "x"}]
)
def test_a_gold_that_no_matcher_can_use_is_refused_at_load_with_its_row(gold):
    rows = [{"question": "q", "answer": "a"}, {"question": "q", "answer": gold}]
    with pytest.raises(DataError, match="dev row 2: the gold is a text"):
        tasks_from_rows(rows, name="dev")


def test_every_column_of_the_row_reaches_the_reward():
    [task] = tasks_from_rows([{"question": "q", "answer": "a", "unit": np.float32(0.5)}])
    assert task.metadata["unit"] == 0.5
    assert type(task.metadata["unit"]) is float


def test_siblings_share_nothing_that_can_be_appended_to():
    assert isinstance(fake_task().prompt, tuple)
    [task] = tasks_from_rows([{"prompt": [{"role": "user", "content": "q"}], "answer": "a"}])
    assert isinstance(task.prompt, tuple)


class Broken:
    """A retriever whose server is down, or answers with a page."""

    def __init__(self, answer):
        self._answer = answer

    def search(self, queries, top_k):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def scores(self, query, top_k):
        return []


@pytest.mark.parametrize(
    "answer",
    [ConnectionRefusedError("port 8000"), TimeoutError("read"), "<html>502 Bad Gateway</html>", {}],
)
async def test_a_tool_that_fails_is_a_typed_observation_and_its_rate_is_shown(answer):
    _, result = await step({"query": "Lima"}, SearchTool(Broken(answer)))
    assert result.status in ("error", "timeout")
    assert result.content
    assert result.documents == ()
    turns = (Turn(text="", observation=Observation(results=(result,))),)
    trajectory = Trajectory(
        task=fake_task(), group_id="g", sibling=0, turns=turns, stop_reason="max_turns"
    )
    score = Score(total=0.0, outcome="unanswered", results={}, parts={})
    group = Group(group_id="g", trajectories=(trajectory,))
    shown = behaviour([ScoredGroup(group=group, scores=(score,))])
    assert shown["tools/failure_frequency"] == 1.0
