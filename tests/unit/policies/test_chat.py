"""ChatPolicy: native calls, answers, and texts read by a codec."""

import pytest

from outfox.core.types import Action, EpisodeKey, Message, ParseError, ToolCall
from outfox.policies.chat import ChatPolicy, read_message
from outfox.policies.codecs.tags import Tags
from outfox.testing.codecs import FakeTokenizer
from outfox.testing.policies import OPENING, SEARCH, TASK

KEY = EpisodeKey(seed=0, step=0, group_id="0/0/t", sibling=0)
CALL = ToolCall(id="7", name="search", arguments={"query": "q"})


class Server:
    """Replies in order; remembers what it was sent."""

    def __init__(self, *replies):
        self._replies, self.sent = list(replies), []

    async def complete(self, messages, tools):
        self.sent.append((messages, tools))
        return self._replies.pop(0)


def reply(content: str, *calls: ToolCall) -> Message:
    return Message(role="assistant", content=content, tool_calls=calls)


async def test_native_calls_are_the_action_and_keep_their_ids():
    server = Server(reply("let me look", CALL), reply("Paris [d1]"))
    talk = ChatPolicy(server).begin(KEY, TASK, OPENING)
    draft = await talk.act(max_new_tokens=9)
    assert (draft.text, draft.action) == ("let me look", Action(calls=(CALL,)))
    talk.observe([Message(role="tool", content="page", tool_call_id="7")], limit=5)
    draft = await talk.act(max_new_tokens=9)
    assert draft.action == Action(answer="Paris", citations=("d1",))
    messages, tools = server.sent[1]
    assert [m.role for m in messages] == ["user", "assistant", "tool"]
    assert tools == (SEARCH,)
    assert talk.ledgers == ()


async def test_an_empty_reply_is_no_answer():
    talk = ChatPolicy(Server(reply(" "))).begin(KEY, TASK, OPENING)
    assert (await talk.act(max_new_tokens=9)).error.fault == "no_action"


async def test_a_codec_reads_the_text_and_tools_are_not_sent():
    server = Server(reply("<search>q</search>"))
    policy = ChatPolicy(server, codec=Tags(FakeTokenizer()))
    draft = await policy.begin(KEY, TASK, OPENING).act(max_new_tokens=9)
    assert draft.action.calls[0].arguments == {"query": "q"}
    assert server.sent[0][1] == ()
    assert not policy.trainable
    assert policy.context_length is None


async def test_a_rewritten_history_is_what_is_sent():
    server = Server(reply("Paris"))
    talk = ChatPolicy(server).begin(KEY, TASK, OPENING)
    talk.rewrite([Message(role="user", content="anew")])
    await talk.act(max_new_tokens=9)
    assert [m.content for m in server.sent[0][0]] == ["anew"]


def test_an_openai_style_message_is_read():
    call = {"id": "7", "function": {"name": "search", "arguments": '{"query": "q"}'}}
    assert read_message({"content": None, "tool_calls": [call]}) == reply("", CALL)
    assert read_message({"content": "hi"}) == reply("hi")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [("{", "no JSON"), ("[]", "got []"), (None, "got None"), ("[" * 5000, "nested too deep")],
)
def test_arguments_that_are_no_object_are_an_error(arguments, what):
    call = {"id": "7", "function": {"name": "search", "arguments": arguments}}
    error = read_message({"tool_calls": [call]})
    assert isinstance(error, ParseError)
    assert error.fault == "malformed_call"
    assert what in error.message


@pytest.mark.parametrize(
    "calls",
    ["search", [None], [{}], [{"id": "7"}], [{"id": 7, "function": {"name": "f"}}], {"a": 1}],
)
def test_calls_of_another_shape_are_an_error_too(calls):
    error = read_message({"content": 5, "tool_calls": calls})
    assert isinstance(error, ParseError)
    assert error.fault == "malformed_call"
