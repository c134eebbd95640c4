"""EnginePolicy: sessions, noise keys, continued turns, forbidden search."""

import numpy as np
import pytest

from outfox.core.errors import ConfigError, EngineError
from outfox.core.protocols import Capabilities, Sampling
from outfox.core.types import EpisodeKey, Message, Opening
from outfox.policies.codecs.tags import Tags
from outfox.policies.engine_policy import EnginePolicy, closed_book, greedy
from outfox.testing.codecs import FakeTokenizer
from outfox.testing.policies import OPENING, TASK, ReplayEngine, Said

TOKENIZER = FakeTokenizer()
KEY = EpisodeKey(seed=1, step=2, group_id="2/0/t", sibling=3)


def said(text: str, finish="stop") -> Said:
    return Said(ids=tuple(TOKENIZER.encode(text)), finish=finish)


def policy(*replies: Said, pauses: bool = False, **sampling) -> EnginePolicy:
    return EnginePolicy(
        ReplayEngine(replies), Tags(TOKENIZER, pauses=pauses), sampling=Sampling(**sampling)
    )


async def test_a_turn_is_read_with_spans_calls_and_logprobs():
    acting = policy(said("<think>a : b</think><search>q</search>"))
    talk = acting.begin(KEY, TASK, OPENING)
    draft = await talk.act(max_new_tokens=50)
    (call,) = draft.action.calls
    assert (call.id, call.arguments) == ("call-0-0", {"query": "q"})
    assert [span.name for span in draft.spans] == ["thought", "draft", "decision", "query"]
    (ledger,) = talk.ledgers
    prompt = len(acting.codec.render(OPENING.messages, ()).token_ids)
    assert [(s.start, s.end) for s in ledger.spans] == [
        (s.start + prompt, s.end + prompt) for s in draft.spans
    ]
    np.testing.assert_array_equal(ledger.logprobs[prompt:], draft.completion.logprobs)
    assert acting.engine.samplings[0].max_tokens == 50


async def test_call_ids_are_unique_in_an_episode():
    talk = policy(said("<search>q</search>")).begin(KEY, TASK, OPENING)
    ids = []
    for _ in range(3):
        draft = await talk.act(max_new_tokens=50)
        ids.append(draft.action.calls[0].id)
        talk.observe([Message(role="tool", content="x")], limit=None)
    assert ids == ["call-0-0", "call-1-0", "call-2-0"]


async def test_after_a_pause_the_same_turn_goes_on():
    acting = policy(said("<think>a : b</think>"), said("<answer>b</answer>"), pauses=True)
    talk = acting.begin(KEY, TASK, OPENING)
    first = await talk.act(max_new_tokens=50)
    assert (first.paused, first.action, first.error) == ("draft", None, None)
    talk.insert("[sure]")
    second = await talk.act(max_new_tokens=40)
    assert second.text == "<think>a : b</think><answer>b</answer>"
    assert second.action.answer == "b"
    assert second.flags == ()
    assert [span.name for span in second.spans] == ["decision", "answer"]
    (ledger,) = talk.ledgers
    owners = [segment.owner for segment in ledger.segments]
    assert owners == ["prompt", "policy", "environment", "policy"]
    (fed,) = acting.engine.fed.values()
    assert [acting.codec.decode(ids) for ids in fed[1:]] == ["[sure]"]


async def test_the_first_thought_after_an_observation_is_a_note():
    acting = policy(
        said("<search>q</search>"), said("<think>a : b</think>"), said("x", "eos"), pauses=True
    )
    talk = acting.begin(KEY, TASK, OPENING)
    await talk.act(max_new_tokens=50)
    talk.observe([Message(role="tool", content="x")], limit=None)
    draft = await talk.act(max_new_tokens=50)
    assert draft.paused == "note"
    assert [span.name for span in draft.spans] == ["thought", "note"]


async def test_a_stop_that_ends_nothing_is_sampled_past_in_one_completion():
    acting = policy(said("</search>"), said("x</search>"), said("<answer>b</answer>"))
    talk = acting.begin(KEY, TASK, OPENING)
    draft = await talk.act(max_new_tokens=50)
    assert draft.text == "</search>x</search><answer>b</answer>"
    assert len(draft.completion.token_ids) == len(draft.completion.logprobs) == 6
    assert [s.max_tokens for s in acting.engine.samplings] == [50, 49, 47]
    assert talk.ledgers[0].loss_mask.sum() == 6


async def test_a_spent_budget_ends_the_turn():
    talk = policy(said("</search>")).begin(KEY, TASK, OPENING)
    draft = await talk.act(max_new_tokens=3)
    assert draft.error.fault == "no_action"
    assert len(draft.completion.token_ids) == 3


async def test_an_engine_that_says_nothing_ends_the_turn():
    talk = policy(Said(ids=())).begin(KEY, TASK, OPENING)
    draft = await talk.act(max_new_tokens=3)
    assert draft.error.fault == "no_action"


async def test_noise_comes_from_the_episode_key_alone():
    acting = policy(said("<search>q</search>"))
    keys = [KEY, KEY] + [
        EpisodeKey(**{"seed": 1, "step": 2, "group_id": "2/0/t", "sibling": 3, **other})
        for other in ({"seed": 2}, {"step": 1}, {"group_id": "2/1/t"}, {"sibling": 0})
    ]
    for key in keys:
        acting.begin(key, TASK, OPENING)
    first, again, *others = acting.engine.noise_keys.values()
    assert first == again
    assert len({first, *others}) == 5
    assert len(acting.engine.open_sessions) == 6


async def test_sessions_end_with_close_and_with_a_rewrite():
    acting = policy(said("<answer>a</answer>"))
    talk = acting.begin(KEY, TASK, OPENING)
    talk.rewrite([Message(role="user", content="anew")])
    assert len(acting.engine.open_sessions) == 1
    assert len(talk.ledgers) == 2
    await talk.close()
    await talk.close()
    assert not acting.engine.open_sessions
    with pytest.raises(EngineError, match="begin a new one"):
        await talk.act(max_new_tokens=1)


async def test_a_session_is_not_left_open_where_the_opening_cannot_be_rendered():
    class Refusing(FakeTokenizer):
        def apply_chat_template(self, conversation, **settings):
            if conversation[0]["content"] == "bad":
                raise ValueError("no such role")
            return super().apply_chat_template(conversation)

    acting = EnginePolicy(ReplayEngine([said("x")]), Tags(Refusing()))
    with pytest.raises(ValueError, match="no such role"):
        acting.begin(KEY, TASK, Opening(messages=(Message(role="user", content="bad"),)))
    assert not acting.engine.open_sessions


def test_closed_book_forbids_search_and_keeps_the_rest():
    probe = closed_book(policy(said("x"), temperature=0.5))
    assert probe.sampling == Sampling(temperature=0.5, forbidden=("<search>",))
    assert greedy(probe).sampling == Sampling(temperature=0.0, forbidden=("<search>",))
    untagged = EnginePolicy(ReplayEngine([said("x")]), Tags(FakeTokenizer(tags=())))
    with pytest.raises(ConfigError, match="8 tokens"):
        closed_book(untagged)


def test_a_policy_is_trainable_where_its_engine_gives_ids_and_logprobs():
    acting = policy(said("x"))
    assert acting.trainable
    assert acting.context_length == acting.engine.context_length
    acting.engine.capabilities = Capabilities(logprobs=False)
    assert not acting.trainable
