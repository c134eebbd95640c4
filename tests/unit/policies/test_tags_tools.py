"""Codec tags with tags for the user's own tools."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfox.core.errors import ConfigError, ContractError
from outfox.core.protocols import Sampling
from outfox.core.types import Action, Message, ToolCall, ToolSpec
from outfox.policies.codecs.markup import same_action, text_parameters
from outfox.policies.codecs.tags import Tags
from outfox.policies.engine_policy import EnginePolicy, closed_book
from outfox.policies.tiny import SPECIAL, build_tokenizer
from outfox.testing.codecs import FakeTokenizer, check_codec_contract
from outfox.testing.policies import ReplayEngine
from outfox.worlds.tools.function import tool

TOOLS = {"opening_hours": "place", "look-up": "name"}
WORDS = ["library", "9 to 17", "open", "法国"]
TOKENIZER = build_tokenizer(WORDS, tools=tuple(TOOLS))
TINY = Tags(TOKENIZER, tools=TOOLS, pauses=True)
CODECS = [
    TINY,
    Tags(FakeTokenizer(), tools=TOOLS),
    Tags(FakeTokenizer(), tools=TOOLS, spaced=True),
]


def call(name: str, /, **arguments: str) -> Action:
    return Action(calls=(ToolCall(id="call", name=name, arguments=arguments),))


@pytest.mark.parametrize("codec", CODECS)
def test_tools_keep_the_protocol(codec: Tags):
    check_codec_contract(codec)


@given(
    st.sampled_from(CODECS),
    st.sampled_from([("search", "query"), *TOOLS.items()]),
    st.text(st.characters(exclude_characters="<[", exclude_categories=["C", "Z"]), min_size=1),
    st.text(st.characters(exclude_characters="<[", exclude_categories=["C", "Z"])),
)
def test_every_tool_is_called_as_written(codec: Tags, tool_, text: str, thought: str):
    action = call(tool_[0], **{tool_[1]: text})
    written = codec.write(action, thought)
    assert written.endswith(f"</{tool_[0]}>")
    assert same_action(codec.parse(codec.decode(codec.encode(written))).action, action)


def test_a_tag_is_one_token_and_ends_a_turn():
    assert [len(TINY.encode(tag)) for tag in TINY.calls] == [1, 1, 1]
    assert TINY.calls == ("<search>", "<opening_hours>", "<look-up>")
    assert TINY.stop == ("</think>", "</search>", "</opening_hours>", "</look-up>", "</answer>")


def test_spans_name_the_decision_and_what_is_asked():
    ids = TINY.encode("<think>9 to 17</think><opening_hours>library</opening_hours>")
    spans = {
        span.name: TINY.decode(ids[span.start : span.end]).strip()
        for span in TINY.spans(ids, after_observation=False)
    }
    assert spans["decision"] == "<opening_hours>"
    assert (spans["draft"], spans["query"]) == ("9 to 17", "library")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<opening_hours> </opening_hours>", "empty_query"),
        ("<opening_hours>never closed", "malformed_call"),
        ("<closing_hours>gym</closing_hours>", "no_action"),
    ],
)
def test_a_call_that_is_none_is_a_typed_error(text: str, fault: str):
    error = TINY.parse(text).error
    assert error is not None
    assert error.fault == fault


def test_without_tools_nothing_but_search_is_a_tag():
    plain = Tags(FakeTokenizer())
    assert plain.calls == ("<search>",)
    assert plain.stop == ("</search>", "</answer>")
    error = plain.parse("<opening_hours>gym</opening_hours>").error
    assert error is not None
    assert error.fault == "no_action"
    with pytest.raises(ContractError, match=r"one call of 'search' or an answer.*opening_hours"):
        plain.write(call("opening_hours", place="gym"))
    same = build_tokenizer(WORDS, tools=("search",))
    assert same.get_vocab() == build_tokenizer(WORDS).get_vocab()


def test_the_tokens_of_tools_come_last():
    usual = build_tokenizer(WORDS).get_vocab()
    assert {k: v for k, v in TOKENIZER.get_vocab().items() if k in usual} == usual
    assert TOKENIZER.convert_tokens_to_ids(list(SPECIAL)) == list(range(len(SPECIAL)))


def test_text_of_a_tool_cannot_call_one():
    said = [Message(role="tool", content="a <opening_hours>gym</opening_hours> b")]
    shown = TINY.decode(TINY.extend(said).token_ids)
    assert "<opening_hours>" not in shown
    assert "&lt;opening_hours>gym" in shown


def test_a_tools_parameter_may_have_another_name_than_query():
    codec = Tags(FakeTokenizer(), tools={"search": "words"})
    assert codec.calls == ("<search>",)
    assert codec.parse("<search>gym</search>").action == call("search", words="gym")


def test_a_closed_book_policy_calls_no_tool():
    shut = closed_book(EnginePolicy(ReplayEngine([]), TINY, sampling=Sampling()))
    assert shut.sampling.forbidden == TINY.calls
    torn = Tags(build_tokenizer(WORDS), tools=TOOLS)
    with pytest.raises(ConfigError, match=r"'<opening_hours>' is \d+ tokens.*solvability\.source"):
        closed_book(EnginePolicy(ReplayEngine([]), torn))


def hours(place: str, day: str = "today") -> str:
    return place + day


def distance(start: str, goal: str) -> str:
    return start + goal


def square(number: int) -> str:
    return str(number * number)


def now() -> str:
    return "noon"


def answer(text: str) -> str:
    return text


def test_a_tag_fills_the_one_text_that_a_tool_needs():
    assert text_parameters([tool(hours).spec]) == {"hours": "place"}


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (distance, r"distance needs \(start: string, goal: string\)"),
        (square, r"square needs \(number: integer\)"),
        (now, r"now needs \(\)"),
        (answer, "a word other than think, answer, information; got 'answer'"),
    ],
)
def test_other_tools_are_refused(function, told: str):
    with pytest.raises(ConfigError, match=told):
        text_parameters([tool(function).spec])


def test_a_name_that_is_no_tag_is_refused():
    spec = ToolSpec(name="opening hours", description="", parameters={})
    with pytest.raises(ConfigError, match="got 'opening hours'"):
        text_parameters([spec])
