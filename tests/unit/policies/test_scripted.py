"""ScriptedPolicy: text or actions, sync or async, with and without a codec."""

import pytest

from outfox.core.types import Action, EpisodeKey, Message, ToolCall
from outfox.policies.codecs.tags import Tags
from outfox.policies.scripted import ScriptedPolicy
from outfox.testing.codecs import FakeTokenizer
from outfox.testing.policies import OPENING, TASK

KEY = EpisodeKey(seed=0, step=0, group_id="0/0/t", sibling=0)
CODEC = Tags(FakeTokenizer(), pauses=True)
SEARCH = Action(calls=(ToolCall(id="x", name="search", arguments={"query": "q"}),))


def begin(script, codec=None):
    return ScriptedPolicy(script, codec=codec).begin(KEY, TASK, OPENING)


async def test_text_is_read_as_tags_without_a_codec():
    draft = await begin(lambda *_: "<search>q</search>").act(max_new_tokens=1)
    assert draft.action.calls == (ToolCall(id="call-0-0", name="search", arguments={"query": "q"}),)
    assert draft.completion is None
    assert (await begin(lambda *_: "Paris").act(max_new_tokens=1)).error.fault == "no_action"


@pytest.mark.parametrize("codec", [None, CODEC])
async def test_an_action_is_written_out(codec):
    draft = await begin(lambda *_: SEARCH, codec).act(max_new_tokens=1)
    assert draft.text == "<search>q</search>"
    assert draft.action.calls[0].id == "call-0-0"


async def test_a_call_that_tags_cannot_say_is_written_with_its_arguments():
    action = Action(calls=(ToolCall(id="x", name="refund", arguments={"order": "7"}),))
    draft = await begin(lambda *_: action).act(max_new_tokens=1)
    assert draft.text == 'refund({"order": "7"})'
    assert draft.action.calls[0].name == "refund"
    assert draft.error is None


async def test_a_script_may_wait_and_sees_task_and_history():
    seen = []

    async def script(task, messages):
        seen.append((task.task_id, [(m.role, m.content) for m in messages]))
        return SEARCH

    talk = begin(script)
    await talk.act(max_new_tokens=1)
    talk.observe([Message(role="tool", content="page")], limit=None)
    await talk.act(max_new_tokens=1)
    opening = ("user", "question")
    assert seen == [
        ("t", [opening]),
        ("t", [opening, ("assistant", "<search>q</search>"), ("tool", "page")]),
    ]


async def test_a_script_pauses_for_readings_as_a_sampled_policy_does():
    talk = begin(lambda *_: "<think>a : b</think><answer>b</answer> tail", CODEC)
    first = await talk.act(max_new_tokens=1)
    assert (first.text, first.paused) == ("<think>a : b</think>", "draft")
    assert [span.name for span in first.spans] == ["thought", "draft"]
    talk.insert("[sure]")
    second = await talk.act(max_new_tokens=1)
    assert (second.text, second.action.answer) == ("<think>a : b</think><answer>b</answer>", "b")
    assert [span.name for span in second.spans] == ["decision", "answer"]
    (ledger,) = talk.ledgers
    assert CODEC.decode(ledger.token_ids).endswith("<think>a : b</think>[sure]<answer>b</answer>")
    assert not ledger.logprobs.any()


async def test_several_answers_are_an_error_and_stand_whole():
    text = "<answer>a</answer><answer>b</answer>"
    draft = await begin(lambda *_: text, CODEC).act(max_new_tokens=1)
    assert draft.error.fault == "several_answers"
    assert draft.text == text


async def test_a_rewritten_history_is_what_the_script_sees():
    seen = []
    talk = begin(lambda task, messages: seen.append(messages) or "<answer>a</answer>", CODEC)
    talk.rewrite([Message(role="user", content="anew")])
    await talk.act(max_new_tokens=1)
    assert [m.content for m in seen[0]] == ["anew"]
    assert len(talk.ledgers) == 2


async def test_an_observation_is_cut_to_its_limit():
    talk = begin(lambda *_: SEARCH, CODEC)
    await talk.act(max_new_tokens=1)
    assert talk.observe([Message(role="tool", content="long " * 9)], limit=9)
    assert len(talk.ledgers[0].segments[-1].token_ids) <= 9


def test_scripts_are_never_trained():
    assert not ScriptedPolicy(lambda *_: "x").trainable
    assert ScriptedPolicy(lambda *_: "x").context_length is None
