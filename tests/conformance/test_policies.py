"""Every policy through the public check, and the check against policies that break a rule."""

import dataclasses

import numpy as np
import pytest

from outfox.core.errors import ContractError
from outfox.core.ledger import Segment
from outfox.core.types import Draft, Message, ToolCall
from outfox.policies.chat import ChatPolicy
from outfox.policies.codecs.tags import Tags
from outfox.policies.engine_policy import EngineConversation, EnginePolicy
from outfox.policies.engines.transformers import TransformersEngine
from outfox.policies.scripted import ScriptedPolicy
from outfox.policies.tiny import build_model, build_tokenizer
from outfox.testing.codecs import FakeTokenizer, LineCodec
from outfox.testing.engines import FakeEngine
from outfox.testing.policies import FakePolicy, check_policy

TEXT = "<think>France capital : Paris</think><answer>Paris</answer>"


def fake_engine_policy(*, pauses: bool) -> EnginePolicy:
    tokenizer = FakeTokenizer()

    def script(session: str, history: str) -> str:
        return TEXT.partition("</think>")[2] if history.endswith("[sure]") else TEXT

    return EnginePolicy(FakeEngine(script, tokenizer), Tags(tokenizer, pauses=pauses))


@pytest.mark.parametrize("pauses", [False, True])
async def test_engine_policies_keep_the_protocol(pauses: bool):
    await check_policy(fake_engine_policy(pauses=pauses))


async def test_a_sampled_policy_keeps_the_protocol():
    tokenizer = build_tokenizer(["France", "Paris"])
    model = build_model(tokenizer, hidden=32, heads=2, layers=1, intermediate=32)
    policy = EnginePolicy(TransformersEngine(model, tokenizer), Tags(tokenizer, pauses=True))
    await check_policy(policy)


async def test_an_engine_policy_takes_any_codec():
    await check_policy(EnginePolicy(FakeEngine(lambda *_: "answer Paris\n"), LineCodec()))


@pytest.mark.parametrize("codec", [None, Tags(FakeTokenizer(), pauses=True), LineCodec()])
async def test_scripted_policies_keep_the_protocol(codec):
    text = "answer Paris\n" if isinstance(codec, LineCodec) else TEXT
    await check_policy(ScriptedPolicy(lambda task, messages: text, codec=codec))


async def test_chat_policies_keep_the_protocol():
    class Server:
        async def complete(self, messages, tools):
            call = ToolCall(id="7", name="search", arguments={"query": "q"})
            return Message(role="assistant", content="", tool_calls=(call,))

    await check_policy(ChatPolicy(Server()))


@dataclasses.dataclass(frozen=True)
class Broken:
    """A policy whose conversations are of another class."""

    conversation: type[EngineConversation]
    trainable: bool = True
    context_length: int | None = None

    def begin(self, key, task, opening):
        return self.conversation(fake_engine_policy(pauses=False), key, opening)


class Forgetful(EngineConversation):
    def observe(self, messages, *, limit):
        self._ledgers = (dataclasses.replace(self._ledgers[0], segments=()),)
        return False


class Overwriting(EngineConversation):
    def rewrite(self, messages):
        """Goes on as if nothing had happened."""


class Misplacing(EngineConversation):
    def _append(self, segment: Segment) -> None:
        logprobs = np.full(len(segment.token_ids), -1, np.float32)
        super()._append(dataclasses.replace(segment, logprobs=logprobs))


@pytest.mark.parametrize(
    ("conversation", "rule"),
    [
        (Forgetful, "only grows"),
        (Overwriting, "begins a new ledger"),
        (Misplacing, "logprobs lie on policy tokens"),
    ],
)
async def test_the_check_names_the_broken_rule(conversation, rule):
    with pytest.raises(ContractError, match=rule):
        await check_policy(Broken(conversation))


async def test_the_check_finds_a_turn_that_is_nothing():
    with pytest.raises(ContractError, match="an action or a parse error"):
        await check_policy(FakePolicy(drafts=[Draft(text="")]))
