"""A scripted engine without a model, and the conformance check of the Engine protocol.

await check_engine(lambda: MyEngine(...), prompt=ids)     raises ContractError at a broken rule
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from outfox.core.errors import ConfigError, ContractError
from outfox.core.ledger import Completion, FinishReason, Floats, Ints
from outfox.core.protocols import Capabilities, Engine, Sampling

_LOGPROB = -0.25


class TextTokenizer(Protocol):
    """What a fake engine needs of a tokenizer; those of transformers fit."""

    @property
    def eos_token_id(self) -> Any: ...
    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...
    def decode(self, token_ids: Any, *, skip_special_tokens: bool) -> Any: ...


class ByteTokenizer:
    """UTF-8 bytes as ids, and 256 for EOS."""

    eos_token_id: int = 256

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        return list(text.encode())

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        return bytes(i for i in token_ids if i < 256).decode(errors="replace")


@dataclass(slots=True, kw_only=True)
class _Session:
    tokens: list[int] = field(default_factory=list[int])
    busy: bool = False


class FakeEngine:
    """Says what a script says, by the session rules of a real engine.

    script: (session name, text of the session so far) -> what the policy writes now; it is cut
    after the first stop string, EOS ends it. `calls` counts generations.
    """

    def __init__(
        self,
        script: Callable[[str, str], str],
        tokenizer: TextTokenizer | None = None,
        *,
        context_length: int = 4096,
    ) -> None:
        self._script = script
        self._tokenizer: TextTokenizer = ByteTokenizer() if tokenizer is None else tokenizer
        self._sessions: dict[str, _Session] = {}
        self.context_length = context_length
        self.policy_version = 0
        self.calls = 0

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    def open(self, session: str, *, noise_key: int, parent: str | None = None) -> None:
        if session in self._sessions:
            raise ContractError(f"A session is opened once; '{session}' is open. End it first.")
        tokens = [] if parent is None else list(self._idle(parent).tokens)
        self._sessions[session] = _Session(tokens=tokens)

    async def generate(
        self, session: str, token_ids: Ints, *, sampling: Sampling, stop: Sequence[str] = ()
    ) -> Completion:
        found = self._idle(session)
        for text in sampling.forbidden:
            if len(self._encode(text)) != 1:
                raise ConfigError(f"A forbidden string must be one token; {text!r} is not.")
        self.calls += 1
        found.busy = True
        await asyncio.sleep(0)
        found.busy = False
        room = self.context_length - len(found.tokens) - len(token_ids)
        if room < 0:
            return self._completion([], "length", None)
        found.tokens += [int(token) for token in token_ids]
        made = self._write(session, found.tokens, min(sampling.max_tokens, room), stop)
        found.tokens += made.token_ids.tolist()
        return made

    async def score(self, prompt_ids: Ints, continuation_ids: Ints) -> Floats:
        return np.full(len(continuation_ids), _LOGPROB, np.float32)

    def end(self, session: str) -> None:
        self._find(session)
        del self._sessions[session]

    def load_weights(self, weights: Mapping[str, Any], policy_version: int) -> None:
        if self._sessions:
            raise ContractError("Weights change between sessions only; end the open ones.")
        self.policy_version = policy_version

    def _write(
        self, session: str, tokens: list[int], budget: int, stop: Sequence[str]
    ) -> Completion:
        if budget <= 0:
            return self._completion([], "length", None)
        history: str = self._tokenizer.decode(tokens, skip_special_tokens=False)
        text = self._script(session, history)
        found = [(text.find(s) + len(s), s) for s in stop if s in text]
        end, stopped = min(found, default=(len(text), None))
        ids = self._encode(text[:end])
        if stopped is None:
            ids.append(int(self._tokenizer.eos_token_id))
        if len(ids) > budget:
            return self._completion(ids[:budget], "length", None)
        return self._completion(ids, "eos" if stopped is None else "stop", stopped)

    def _completion(self, ids: Sequence[int], reason: FinishReason, stop: str | None) -> Completion:
        return Completion(
            token_ids=np.asarray(ids, np.int64),
            logprobs=np.full(len(ids), _LOGPROB, np.float32),
            policy_version=self.policy_version,
            finish_reason=reason,
            stop=stop,
        )

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def _find(self, session: str) -> _Session:
        if session not in self._sessions:
            raise ContractError(f"A session is opened before use; '{session}' is not. Open it.")
        return self._sessions[session]

    def _idle(self, session: str) -> _Session:
        found = self._find(session)
        if found.busy:
            raise ContractError(f"A session does one thing at a time; '{session}' is generating.")
        return found


# -- conformance ----------------------------------------------------------------------------------
async def check_engine(
    make: Callable[[], Engine], *, prompt: Ints, weights: Mapping[str, Any] | None = None
) -> None:
    """Hold an engine to its protocol; `prompt` is any text in its tokens.

    `weights`: what `load_weights` accepts. Raises ContractError naming the rule that broke.
    """
    for check in (_check_sessions, _check_completions, _check_noise, _check_forks, _check_context):
        await check(make(), prompt)
    await _check_scores(make(), prompt)
    await _check_weights(make(), prompt, weights or {})


async def _check_sessions(engine: Engine, prompt: Ints) -> None:
    engine.open("a", noise_key=1)
    _refuses(lambda: engine.open("a", noise_key=1), "opening an open session")
    _refuses(lambda: engine.end("b"), "ending an unknown session")
    _refuses(lambda: engine.open("c", noise_key=1, parent="b"), "forking an unknown session")
    pair = [engine.generate("a", prompt, sampling=Sampling(max_tokens=4)) for _ in range(2)]
    done = await asyncio.gather(*pair, return_exceptions=True)
    _require(
        [isinstance(item, ContractError) for item in done] == [False, True],
        "a session generates one completion at a time; the second call is refused",
    )
    engine.end("a")
    try:
        await engine.generate("a", prompt, sampling=Sampling())
    except ContractError:
        return
    _require(False, "an ended session generates nothing")


async def _check_completions(engine: Engine, prompt: Ints) -> None:
    engine.open("a", noise_key=1)
    made = await engine.generate("a", prompt, sampling=Sampling(max_tokens=5))
    _require(0 < len(made.token_ids) <= 5, "a completion keeps its budget")
    _require(len(made.token_ids) == len(made.logprobs), "every token has a logprob")
    _require(bool((made.logprobs <= 0).all()), "logprobs are at most 0")
    _require(made.token_ids.dtype == np.int64, "token ids are int64")
    _require(made.logprobs.dtype == np.float32, "logprobs are float32")
    _require(made.policy_version == engine.policy_version, "a completion names its version")
    _require(made.finish_reason != "stop", "without stop strings nothing stops")
    empty = await engine.generate("a", prompt, sampling=Sampling(max_tokens=0))
    _require(
        (len(empty.token_ids), empty.finish_reason) == (0, "length"),
        "an empty budget gives an empty completion that ends by length",
    )
    engine.end("a")


async def _check_noise(engine: Engine, prompt: Ints) -> None:
    sampling = Sampling(max_tokens=6)
    names = ("a", "b", "c")
    for name in names:
        engine.open(name, noise_key=1)
    first = await engine.generate("a", prompt, sampling=sampling)
    rest = await asyncio.gather(*(engine.generate(n, prompt, sampling=sampling) for n in "bc"))
    _require(
        all(_same(first, other) for other in rest),
        "equal noise keys and tokens give equal completions, alone or beside others",
    )
    for name in names:
        engine.end(name)


async def _check_forks(engine: Engine, prompt: Ints) -> None:
    if not engine.capabilities.fork:
        return
    sampling = Sampling(max_tokens=4)
    engine.open("a", noise_key=1)
    await engine.generate("a", prompt, sampling=sampling)
    engine.open("b", noise_key=1, parent="a")
    pair = [await engine.generate(name, prompt, sampling=sampling) for name in ("b", "a")]
    _require(_same(*pair), "a fork goes on as its parent does")
    engine.end("a")
    await engine.generate("b", prompt, sampling=sampling)
    engine.end("b")


async def _check_context(engine: Engine, prompt: Ints) -> None:
    engine.open("a", noise_key=1)
    held = 0
    while held + len(prompt) <= engine.context_length:
        sampling = Sampling(max_tokens=engine.context_length)
        made = await engine.generate("a", prompt, sampling=sampling)
        held += len(prompt) + len(made.token_ids)
        _require(held <= engine.context_length, "a session never exceeds the context length")
    over = np.resize(prompt, engine.context_length + 1)
    made = await engine.generate("a", over, sampling=Sampling())
    _require(
        (len(made.token_ids), made.finish_reason) == (0, "length"),
        "a full session gives an empty completion that ends by length",
    )
    engine.end("a")


async def _check_scores(engine: Engine, prompt: Ints) -> None:
    if not engine.capabilities.score:
        return
    scores = await engine.score(prompt, prompt)
    _require(scores.shape == prompt.shape, "score gives one logprob per continuation token")
    _require(bool((scores <= 0).all()), "scores are logprobs, at most 0")


async def _check_weights(engine: Engine, prompt: Ints, weights: Mapping[str, Any]) -> None:
    if not engine.capabilities.load_weights:
        return
    version = engine.policy_version + 1
    engine.open("a", noise_key=1)
    await engine.generate("a", prompt, sampling=Sampling(max_tokens=2))
    _refuses(lambda: engine.load_weights(weights, version), "new weights under an open session")
    engine.end("a")
    engine.load_weights(weights, version)
    _require(engine.policy_version == version, "load_weights sets the policy version")


def _same(one: Completion, other: Completion) -> bool:
    return bool(
        np.array_equal(one.token_ids, other.token_ids)
        and np.array_equal(one.logprobs, other.logprobs)
    )


def _require(held: bool, rule: str) -> None:
    if not held:
        raise ContractError(f"An engine must keep this rule: {rule}. This one does not.")


def _refuses(act: Callable[[], None], what: str) -> None:
    try:
        act()
    except ContractError:
        return
    raise ContractError(f"An engine must refuse this with a ContractError: {what}.")
