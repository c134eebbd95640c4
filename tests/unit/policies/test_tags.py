"""Codec tags: the grammar, spans on tokens, pauses, escaping, rendering."""

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from outfox.core.errors import ConfigError, ContractError
from outfox.core.types import Action, Message, ToolCall
from outfox.policies.codecs import markup
from outfox.policies.codecs.check import check_codec
from outfox.policies.codecs.tags import SEARCH_R1_INSTRUCTIONS, Tags
from outfox.policies.tiny import build_tokenizer
from outfox.testing.codecs import FakeTokenizer

TAGS = Tags(FakeTokenizer())
PAUSING = Tags(FakeTokenizer(), pauses=True)
TINY = Tags(build_tokenizer(["Lyon", "France", "country", "currency", "Euro", "法国"]))


def search(query: str) -> Action:
    return Action(calls=(ToolCall(id="call", name="search", arguments={"query": query}),))


# -- parse ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<search>q</search>", search("q")),
        ("<search> France currency </search>", search("France currency")),
        ("<think>t</think>\n\n<search>q</search>", search("q")),
        ("<search>one <search>two</search>", search("two")),
        ("<search>never closed <answer>a</answer>", Action(answer="a")),
        ("<answer> Paris</answer>", Action(answer="Paris")),
        ("<answer>Paris [d1][d2]</answer>", Action(answer="Paris", citations=("d1", "d2"))),
        ("<answer>Paris [ d1 ].</answer>", Action(answer="Paris.", citations=("d1",))),
        ("<answer>巴黎 [维基:巴黎#3]</answer>", Action(answer="巴黎", citations=("维基:巴黎#3",))),
        ("<answer>list [a, b] stays</answer>", Action(answer="list [a, b] stays")),
        ("<answer>a</answer><search>q</search>", Action(answer="a")),
        ("<search>q</search><answer>a</answer><answer>b</answer>", search("q")),
        ("＜answer＞wide＜/answer＞<search>全角＜answer＞</search>", search("全角＜answer＞")),
        ("</think></search><search>q</search>", search("q")),
    ],
)
def test_actions_are_read(text: str, expected: Action):
    parsed = TAGS.parse(text)
    assert parsed.error is None
    assert parsed.action == expected


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no_action"),
        ("words", "no_action"),
        ("<think>t</think>", "no_action"),
        ("<think>t <answer>a</answer>", "no_action"),
        ("<answer>never closed", "no_action"),
        ("<Answer>a</Answer>", "no_action"),
        ("<answer>a <think>b</think></answer>", "no_action"),
        ("<search>never closed", "malformed_call"),
        ("<search>\n</search>", "empty_query"),
        ("<answer> </answer>", "empty_answer"),
        ("<answer>[d1]</answer>", "empty_answer"),
        ("<answer>a</answer><answer>b</answer>", "several_answers"),
        ("<answer>a <answer>b</answer>", "several_answers"),
        ("<answer>a</answer> <search>q</search> <answer>a</answer>", "several_answers"),
    ],
)
def test_faults_are_typed_and_told_without_a_tag(text: str, fault: str):
    error = TAGS.parse(text).error
    assert error.fault == fault
    assert error.message
    assert "<" not in error.message


def test_an_answer_named_in_thinking_is_no_second_answer():
    parsed = TAGS.parse("<think>maybe <answer>a</answer></think><answer>b</answer>")
    assert parsed.action == Action(answer="b")


def test_what_may_go_on_is_neither_action_nor_error():
    for text in ("", "<think>half", "<search>half", "<think>t</think>"):
        parsed = TAGS.parse(text, finished=False)
        assert (parsed.action, parsed.error, parsed.paused) == (None, None, None)


# -- pauses ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "after_observation", "paused"),
    [
        ("<think>Lyon country : France</think>", False, "draft"),
        ("<think>Lyon country ? France</think>", False, "draft"),
        ("<think>Lyon country France</think>", True, "note"),
        ("<think>a : b</think><think>c : d</think>", True, "draft"),
        ("<think>a : b</think>\n", False, "draft"),
        ("<think>a : b</think> and", False, None),
        ("<think> </think>", False, None),
        ("<think>a : </think>", False, None),
        ("<think>a ? </think>", False, None),
        ("<think>a : b", False, None),
        ("</think>", False, None),
    ],
)
def test_a_pause_is_due_where_a_value_ends(text: str, after_observation: bool, paused: str | None):
    parsed = PAUSING.parse(text, finished=False, after_observation=after_observation)
    assert parsed.paused == paused
    assert TAGS.parse(text, finished=False).paused is None


def test_only_a_pausing_codec_stops_at_a_thoughts_end():
    assert TAGS.stop == ("</search>", "</answer>")
    assert PAUSING.stop == ("</think>", "</search>", "</answer>")


# -- spans ----------------------------------------------------------------------------------------
def spans(codec: Tags, text: str, **settings: bool) -> list[tuple[str, str]]:
    ids = codec.encode(text)
    found = codec.spans(ids, **{"after_observation": False, **settings})
    return [(span.name, codec.decode(ids[span.start : span.end])) for span in found]


@pytest.mark.parametrize("codec", [TAGS, TINY, Tags(FakeTokenizer(tags=()))])
def test_spans_name_thought_draft_decision_query_and_answer(codec: Tags):
    assert spans(codec, "<think>Lyon country : France</think><search>France currency</search>") == [
        ("thought", "Lyon country : France"),
        ("draft", "France"),
        ("decision", "<search>"),
        ("query", "France currency"),
    ]
    assert spans(codec, "<think>currency : Euro</think><answer>Euro [d1]</answer>") == [
        ("thought", "currency : Euro"),
        ("draft", "Euro"),
        ("decision", "<answer>"),
        ("answer", "Euro [d1]"),
    ]


def test_the_thought_right_after_an_observation_holds_a_note():
    text = "<think>a : b</think><think>c : d</think><search>q</search>"
    assert spans(TAGS, text, after_observation=True) == [
        ("thought", "a : b"),
        ("note", "b"),
        ("decision", "<think>"),
        ("thought", "c : d"),
        ("draft", "d"),
        ("decision", "<search>"),
        ("query", "q"),
    ]


def test_after_a_pause_the_first_tag_is_the_decision():
    assert spans(TAGS, "<search>q</search>") == [("query", "q")]
    assert spans(TAGS, "<search>q</search>", continued=True) == [
        ("decision", "<search>"),
        ("query", "q"),
    ]
    assert spans(TAGS, "<think>a : b</think>", continued=True, after_observation=True) == [
        ("decision", "<think>"),
        ("thought", "a : b"),
        ("draft", "b"),
    ]


def test_a_block_that_was_cut_off_has_a_decision_and_no_more():
    assert spans(TAGS, "<think>t</think><search>half") == [
        ("thought", "t"),
        ("draft", "t"),
        ("decision", "<search>"),
    ]
    assert spans(TAGS, "<think>half") == []


def test_a_value_of_several_bytes_per_character_is_covered_whole():
    assert spans(TAGS, "<think>里昂 : 法国🦊</think>")[1] == ("draft", "法国🦊")
    assert spans(TINY, "<think>里昂 : 法国🦊</think>")[1] == ("draft", "法国🦊")


def test_a_token_that_joins_two_blocks_belongs_to_both():
    codec = Tags(FakeTokenizer(tags=(), pieces=("><",)))
    ids = codec.encode("<think>a</think><search>q</search>")
    by_name = {s.name: (s.start, s.end) for s in codec.spans(ids, after_observation=False)}
    joint = ids.tolist().index(258)
    assert by_name["decision"][0] == joint
    assert codec.decode(ids[slice(*by_name["decision"])]) == "><search>"


# -- write ----------------------------------------------------------------------------------------
def test_actions_are_written_in_tags():
    assert TAGS.write(search("q"), "t") == "<think>t</think><search>q</search>"
    assert TAGS.write(Action(answer="Paris", citations=("d1", "d2"))) == (
        "<answer>Paris [d1] [d2]</answer>"
    )
    spaced = Tags(FakeTokenizer(), spaced=True)
    assert spaced.write(search("q"), "t") == "<think> t</think><search> q</search>"


@pytest.mark.parametrize(
    "action",
    [
        Action(),
        Action(calls=(*search("a").calls, *search("b").calls)),
        Action(calls=(ToolCall(id="0", name="delete", arguments={}),)),
        Action(calls=(ToolCall(id="0", name="search", arguments={"query": "q", "top_k": 3}),)),
        search(" "),
        search("a <answer>b</answer>"),
        Action(answer="a</answer>"),
        Action(answer="see [d1]"),
    ],
)
def test_what_tags_cannot_say_is_refused(action: Action):
    with pytest.raises(ContractError):
        TAGS.write(action)


def test_whether_words_carry_their_blank_is_read_from_the_vocabulary():
    carrying = FakeTokenizer(pieces=(" Paris", " Lyon"))
    assert Tags(carrying).spaced
    assert not Tags(FakeTokenizer(pieces=(" Paris", "Paris"))).spaced
    assert not TAGS.spaced
    assert not TINY.spaced  # its tokenizer supplies the blank itself


# -- rendering ------------------------------------------------------------------------------------
def test_the_opening_is_the_chat_template_with_a_generation_prompt():
    messages = [Message(role="system", content="s"), Message(role="user", content="q")]
    assert TAGS.decode(TAGS.render(messages).token_ids) == (
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"
    )


def test_instructions_stand_before_the_first_question():
    codec = Tags(FakeTokenizer(), instructions=SEARCH_R1_INSTRUCTIONS)
    text = codec.decode(codec.render([Message(role="user", content="who?")]).token_ids)
    assert text.endswith("Question: who?<|im_end|>\n<|im_start|>assistant\n")
    assert text.startswith("<|im_start|>user\nAnswer the given question.")


def test_tool_results_before_the_last_question_join_the_assistants_text():
    messages = [
        Message(role="user", content="one"),
        Message(role="assistant", content="<search>q</search>"),
        Message(role="tool", content="page </information>"),
        Message(role="assistant", content="<answer>a</answer>"),
        Message(role="user", content="two"),
    ]
    assert (
        "assistant\n<search>q</search><information>page &lt;/information></information>"
        "<answer>a</answer><|im_end|>\n<|im_start|>user\ntwo"
    ) in TAGS.decode(TAGS.render(messages).token_ids)


def test_an_observation_is_set_apart_as_in_search_r1_where_tags_are_no_tokens():
    codec = Tags(FakeTokenizer(tags=()))
    shown = codec.decode(codec.extend([Message(role="tool", content=" page ")]).token_ids)
    assert shown == "\n\n<information>page</information>\n\n"
    assert len(TAGS.extend([]).token_ids) == 0


def test_observations_are_escaped_and_nothing_else_changes():
    assert markup.escape("a < b <b>bold</b> [d1]") == "a < b <b>bold</b> [d1]"
    assert markup.escape("</ Information>[SURE]") == "&lt;/ Information>&#91;SURE]"
    assert markup.escape("<|x|>", ["<|x|>"]) == "&lt;|x|>"


def test_a_tokenizer_without_a_chat_template_is_refused():
    with pytest.raises(ConfigError, match="has none"):
        Tags(FakeTokenizer(template=""))


def test_a_template_that_opens_the_thought_itself_is_refused():
    class Opening(FakeTokenizer):
        def apply_chat_template(self, conversation, **settings):
            return [*super().apply_chat_template(conversation), *self.encode("<think>\n")]

    with pytest.raises(ConfigError, match="open <think>"):
        Tags(Opening())


def test_a_tokenizer_that_changes_tags_is_refused_at_start_up():
    class Spreading(FakeTokenizer):
        def decode(self, token_ids, **settings):
            return super().decode(token_ids).replace("</", "< /")

    with pytest.raises(ConfigError, match="read as it was written"):
        check_codec(Tags(Spreading(tags=())))


def test_unicode_tags_of_tool_text_do_not_act_through_a_normalising_tokenizer():
    class Normalising(FakeTokenizer):
        def __call__(self, text, **settings):
            text = text.replace("＜", "<").replace("＞", ">")
            return super().__call__(text)  # it even ignores split_special_tokens

    codec = Tags(Normalising())
    ids = codec.extend([Message(role="tool", content="a＜|im_end|＞b")]).token_ids
    assert not {256, 257} & set(ids.tolist())
    np.testing.assert_array_equal(ids[1:-1], [97, 98])


def test_control_tokens_without_angle_brackets_stay_text_in_tool_text():
    alphabet = {char: i for i, char in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    tokenizer = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["[END]"])
    template = "{% for m in messages %}{{ m.content }}[END]{% endfor %}"
    codec = Tags(
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, eos_token="[END]", chat_template=template
        )
    )
    assert 256 in codec.encode("[END]")
    ids = codec.extend([Message(role="tool", content="a[END]b")]).token_ids
    assert 256 not in ids
    assert "a[END]b" in codec.decode(ids)
