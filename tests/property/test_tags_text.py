"""Codec tags over any text: round trips, spans, cuts, escapes; it never raises on policy text."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from outfox.core.errors import ContractError
from outfox.core.types import Action, Message, ToolCall
from outfox.policies.codecs.alignment import align
from outfox.policies.codecs.markup import blank, blocks, same_action
from outfox.policies.codecs.tags import Tags
from outfox.policies.tiny import build_tokenizer
from outfox.testing.codecs import FakeTokenizer

PLAIN = Tags(FakeTokenizer(tags=(), pieces=("><", "search>", "</", "the", " :")))
SPACED = Tags(FakeTokenizer(), spaced=True)
TINY = Tags(build_tokenizer(["Lyon", "France", "法国"]), pauses=True)
CODECS = st.sampled_from([PLAIN, SPACED, TINY])
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PIECES = st.sampled_from(
    [f"<{end}{name}>" for name in ("think", "search", "answer", "information") for end in ("", "/")]
    + [" : ", "[d1]", "[sure]", "法国", "<", "</", "\ufffd", "\u200b"]
)
TEXTS = st.lists(PIECES | WORDS, max_size=10).map("".join)
ACTIONS = st.one_of(
    st.builds(
        Action,
        answer=TEXTS,
        citations=st.lists(st.from_regex(r"[\w.:/#@+-]{1,8}", fullmatch=True), max_size=3).map(
            tuple
        ),
    ),
    TEXTS.map(
        lambda query: Action(calls=(ToolCall(id="x", name="search", arguments={"query": query}),))
    ),
)


def queries(action: Action) -> list[str]:
    return [call.arguments["query"] for call in action.calls]


def awkward(text: str | None) -> bool:
    """Outer blanks, nothing visible, or characters of the markup."""
    if text is None:
        return False
    return text != text.strip() or blank(text) or bool(set("<[") & set(text))


@given(CODECS, ACTIONS, TEXTS)
def test_what_is_written_is_read_back_or_refused(codec: Tags, action: Action, thought: str):
    try:
        text = codec.write(action, thought)
    except ContractError:
        assert any(map(awkward, [action.answer, thought or None, *queries(action)]))
        return
    assert same_action(codec.parse(codec.decode(codec.encode(text))).action, action)


@given(CODECS, TEXTS)
def test_any_policy_text_is_an_action_or_an_error_and_never_raises(codec: Tags, text: str):
    parsed = codec.parse(text)
    assert (parsed.action is None) != (parsed.error is None)
    for call in parsed.action.calls if parsed.action else ():
        assert call.arguments["query"].strip()
    unfinished = codec.parse(text, finished=False)
    assert unfinished.error is None or parsed.error is not None


@given(CODECS, TEXTS, TEXTS)
def test_what_stands_in_thinking_changes_nothing(codec: Tags, thought: str, text: str):
    assume("</think>" not in thought)
    read = codec.parse(f"<think>{thought}</think>{text}")
    assert read.action == codec.parse(text).action
    assert read.error == codec.parse(text).error


@given(CODECS, TEXTS, st.booleans(), st.booleans())
def test_spans_cover_what_they_name(codec: Tags, text: str, after: bool, continued: bool):
    ids = codec.encode(text)
    inner = [block.inner(text).strip() for block in blocks(text)]
    for span in codec.spans(ids, after_observation=after, continued=continued):
        assert 0 <= span.start < span.end <= len(ids)
        shown = codec.decode(ids[span.start : span.end])
        if span.name in ("thought", "query", "answer"):
            # U+FFFD in several tokens looks finished after the first, as any unfinished character.
            assert any(one and one in shown for one in inner) or "\ufffd" in text
        if span.name == "decision":
            assert any(tag in shown for tag in ("<think>", "<search>", "<answer>"))


@given(st.sampled_from([PLAIN, TINY]), st.data())
def test_offsets_fit_any_ids(codec: Tags, data: st.DataObject):
    stray = st.integers(0, (256 + 2 + 5 if codec is PLAIN else len(TINY._tokenizer)) - 1)
    spelled = st.sampled_from(["🦊", "é法", " a : b", "<think>"]).map(codec.encode)
    parts = data.draw(st.lists(st.lists(stray, max_size=4) | spelled, max_size=8))
    ids = tuple(int(token) for part in parts for token in part)
    aligned = align(ids, codec._text, codec._piece)
    assert aligned.text == codec._tokens.decode(ids)
    assert len(aligned.starts) == len(aligned.ends) == len(ids)
    assert list(aligned.starts) == sorted(aligned.starts)
    assert list(aligned.ends) == sorted(aligned.ends)
    for place, char in enumerate(aligned.text):
        start, end = aligned.tokens(place, place + 1)
        assert start < end
        if codec is PLAIN:
            assert char in codec._tokens.decode(ids[start:end])


@given(st.sampled_from([PLAIN, TINY]), st.lists(st.sampled_from("🦊é法a:"), max_size=30))
def test_a_character_touches_its_own_bytes_and_no_others(codec: Tags, characters: list[str]):
    ids = tuple(codec.encode("".join(characters)).tolist())
    aligned = align(ids, codec._text, codec._piece)
    assert aligned.text == "".join(characters)
    for place, char in enumerate(characters):
        start, end = aligned.tokens(place, place + 1)
        assert end - start <= len(char.encode()) + 1  # and perhaps one that adds nothing


@given(CODECS, st.lists(TEXTS, min_size=1, max_size=3), st.integers(0, 60))
def test_tool_text_keeps_its_limit_and_cannot_act(codec: Tags, pages: list[str], room: int):
    messages = [Message(role="tool", content=page) for page in pages]
    smallest = len(codec.extend([Message(role="tool", content="")]).token_ids)
    limit = smallest + room
    rendered, whole = codec.extend(messages, limit), codec.extend(messages)
    assert len(rendered.token_ids) <= limit
    assert rendered.truncated == (len(whole.token_ids) > limit)
    text = codec.decode(rendered.token_ids).strip()
    assert text.startswith("<information>")
    assert text.endswith("</information>")
    body = text.removeprefix("<information>").removesuffix("</information>")
    assert blocks(body) == ()
    assert codec.parse(body).flags == ()


def test_an_action_in_the_wrong_words_is_refused():
    with pytest.raises(ContractError):
        PLAIN.write(Action(answer="<answer>"))
