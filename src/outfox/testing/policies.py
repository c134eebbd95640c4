"""An engine that says given token ids, a policy of given drafts, and the check of Policy.

await check_policy(policy)     raises ContractError at a broken rule
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from outfox.core.errors import ContractError
from outfox.core.ledger import Completion, FinishReason, Floats, Ints, Ledger
from outfox.core.protocols import Capabilities, Conversation, Policy, Sampling
from outfox.core.types import Draft, EpisodeKey, Message, Opening, Task, ToolSpec

TASK = Task(task_id="t", prompt=(Message(role="user", content="question"),), reference="a")
SEARCH = ToolSpec(name="search", description="Search.", parameters={"type": "object"})
OPENING = Opening(messages=TASK.prompt, tools=(SEARCH,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a ReplayEngine says in one generation."""

    ids: tuple[int, ...]
    finish: FinishReason = "stop"


class ReplayEngine:
    """An Engine that says `replies` in order in every session, whatever it is fed.

    `sampled` collects the completions and `fed` the ids that came in, per session.
    """

    capabilities = Capabilities()

    def __init__(self, replies: Sequence[Said], *, context_length: int = 1 << 20) -> None:
        self._replies = tuple(replies)
        self.context_length = context_length
        self.policy_version = 0
        self.sampled: dict[str, list[Completion]] = {}
        self.fed: dict[str, list[Ints]] = {}
        self.noise_keys: dict[str, int] = {}
        self.samplings: list[Sampling] = []
        self.open_sessions: set[str] = set()

    def open(self, session: str, *, noise_key: int, parent: str | None = None) -> None:
        self.sampled[session], self.fed[session] = [], []
        self.noise_keys[session] = noise_key
        self.open_sessions.add(session)

    async def generate(
        self, session: str, token_ids: Ints, *, sampling: Sampling, stop: Sequence[str] = ()
    ) -> Completion:
        said = self._replies[len(self.sampled[session]) % len(self._replies)]
        self.samplings.append(sampling)
        ids = np.asarray(said.ids[: sampling.max_tokens], np.int64)
        made = Completion(
            token_ids=ids,
            logprobs=(-(1.0 + np.arange(len(ids))) / 128).astype(np.float32),
            policy_version=self.policy_version,
            finish_reason=said.finish if len(ids) == len(said.ids) else "length",
        )
        self.fed[session].append(token_ids)
        self.sampled[session].append(made)
        return made

    async def score(self, prompt_ids: Ints, continuation_ids: Ints) -> Floats:
        return np.zeros(len(continuation_ids), np.float32)

    def end(self, session: str) -> None:
        self.open_sessions.remove(session)

    def load_weights(self, weights: Mapping[str, Any], policy_version: int) -> None:
        self.policy_version = policy_version


@dataclass(slots=True, kw_only=True, eq=False)
class FakePolicy:
    """A Policy that hands out `drafts` in order in every conversation, and counts what is asked."""

    drafts: Sequence[Draft]
    trainable: bool = False
    context_length: int | None = None
    asked: Counter[str] = field(default_factory=lambda: Counter[str]())

    def begin(self, key: EpisodeKey, task: Task, opening: Opening) -> FakeConversation:
        self.asked["begin"] += 1
        return FakeConversation(self)


class FakeConversation:
    """Conversation of a FakePolicy; without ledgers."""

    def __init__(self, policy: FakePolicy) -> None:
        self._asked, self._drafts = policy.asked, iter(policy.drafts)
        self.ledgers: tuple[Ledger, ...] = ()

    async def act(self, *, max_new_tokens: int) -> Draft:
        self._asked["act"] += 1
        return next(self._drafts)

    def observe(self, messages: Sequence[Message], *, limit: int | None) -> bool:
        self._asked["observe"] += 1
        return False

    def insert(self, text: str) -> None:
        self._asked[f"insert {text}"] += 1

    def rewrite(self, messages: Sequence[Message]) -> None:
        self._asked["rewrite"] += 1

    async def close(self) -> None:
        self._asked["close"] += 1


# -- conformance ----------------------------------------------------------------------------------
async def check_policy(policy: Policy, *, opening: Opening = OPENING) -> None:
    """Hold a policy and its conversations to their protocol, for one turn and one observation.

    Raises ContractError naming the rule that broke.
    """
    keys = [EpisodeKey(seed=1, step=0, group_id="0/0/t", sibling=k) for k in (0, 0, 1)]
    first, again, other = (policy.begin(key, TASK, opening) for key in keys)
    drafts = [await _turn(talk) for talk in (first, again)]
    _require(drafts[0].text == drafts[1].text, "equal keys give equal episodes")
    _require(
        [ids.tolist() for ids in _ids(first)] == [ids.tolist() for ids in _ids(again)],
        "equal keys give equal tokens",
    )
    before = _ids(first)
    untouched = _ids(other)
    first.observe([Message(role="tool", content="result")], limit=None)
    _require(_grew(before, _ids(first)), "a ledger only grows")
    _require(_equal(untouched, _ids(other)), "conversations share nothing")
    first.rewrite([Message(role="user", content="rewritten")])
    _require(
        not policy.trainable or len(first.ledgers) == len(before) + 1,
        "a rewritten history begins a new ledger",
    )
    _require(_grew(before, _ids(first)[: len(before)]), "a rewrite leaves earlier ledgers alone")
    for talk in (first, again, other):
        await talk.close()


async def _turn(talk: Conversation) -> Draft:
    draft = await talk.act(max_new_tokens=64)
    pauses = 0
    while draft.paused is not None:
        _require(
            any(span.name == draft.paused for span in draft.spans), "a pause names one of its spans"
        )
        pauses += 1
        _require(pauses < 64, "a turn ends")
        talk.insert("[sure]")
        draft = await talk.act(max_new_tokens=64)
    _require(
        (draft.action is None) != (draft.error is None),
        "a finished turn is an action or a parse error",
    )
    for ledger in talk.ledgers:
        owned = ledger.loss_mask
        _require(not ledger.logprobs[~owned].any(), "logprobs lie on policy tokens only")
        _require(len(ledger.logprobs) == len(ledger), "arrays are as long as the ledger")
    return draft


def _ids(talk: Conversation) -> list[Ints]:
    return [ledger.token_ids for ledger in talk.ledgers]


def _grew(before: Sequence[Ints], after: Sequence[Ints]) -> bool:
    pairs = zip(before, after, strict=False)
    return len(after) >= len(before) and all(
        np.array_equal(old, new[: len(old)]) for old, new in pairs
    )


def _equal(before: Sequence[Ints], after: Sequence[Ints]) -> bool:
    return len(before) == len(after) and _grew(before, after)


def _require(kept: bool, rule: str) -> None:
    if not kept:
        raise ContractError(f"{rule}: correct the policy")
