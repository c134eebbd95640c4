# pyright: standard
"""The engine over any transformers causal language model: continuous batching, in asyncio.

    generate ─▶ queue ─▶ one background task: [plan ─▶ one packed forward ─▶ draw ─▶ retire] ...

Each step feeds one token of every decoding session and all new tokens of sessions that begin a
turn; finished ones leave and waiting ones enter at once. Between steps the event loop runs, so
tools overlap generation. A session's keys and values stay over turns, and sessions that begin
with the same tokens, as siblings do, share them until they part.

Logprobs belong to the distribution that was sampled from (temperature, top_p and forbidden tokens
applied; at temperature 0 to temperature 1). How many threads torch uses is the caller's business.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from outfox.core.errors import ConfigError, ContractError, EngineError
from outfox.core.ledger import Completion, FinishReason, Floats, Ints
from outfox.core.protocols import Capabilities, Sampling
from outfox.core.seeding import uniforms
from outfox.policies.engines.continuous.forward import Forward, check_model
from outfox.policies.engines.continuous.sampling import Rule, draw
from outfox.policies.engines.continuous.schedule import Job, Schedule, Session
from outfox.policies.engines.continuous.stopping import Stops
from outfox.policies.engines.continuous.weights import copy_weights
from outfox.policies.logprobs import plain_head, token_logprobs

_YIELDS = 4
"""Turns of the event loop between steps: a finished turn's tool call may need a few."""


class TransformersEngine:
    """Protocol `Engine`. `model` is used as it is and never switched to another attention.

    Args:
        max_rows: Sessions that generate at once; more wait.
        max_step_tokens: About how many new tokens one step prefills.
        context_length: Most tokens of a session; null, and at most: what the model allows.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_rows: int = 256,
        max_step_tokens: int = 4096,
        context_length: int | None = None,
    ) -> None:
        limit = model.config.get_text_config().max_position_embeddings
        if context_length is not None and not 1 <= context_length <= limit:
            raise ConfigError(
                f"context_length must lie between 1 and the model's {limit}; got {context_length}."
            )
        self._model = model.eval()
        check_model(model)
        plain_head(model)
        self._size = model.config.get_text_config().vocab_size
        self._rules: dict[tuple[float, float, tuple[str, ...]], Rule] = {}
        self._forward = Forward(model)
        self._stops = Stops(tokenizer, model)
        self._schedule = Schedule(max_rows=max_rows, max_step_tokens=max_step_tokens)
        self._sessions: dict[str, Session] = {}
        self._task: asyncio.Task[None] | None = None
        self._context_length = context_length or limit
        self._policy_version = 0

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    @property
    def policy_version(self) -> int:
        return self._policy_version

    @property
    def context_length(self) -> int:
        return self._context_length

    @property
    def fed_tokens(self) -> int:
        """Tokens that have gone through the model so far; a session's history goes through once."""
        return self._forward.fed_tokens

    @property
    def shared_tokens(self) -> int:
        """Tokens that did not, since a session with the same history fed them."""
        return self._forward.shared_tokens

    # -- sessions ---------------------------------------------------------------------------------
    def open(self, session: str, *, noise_key: int, parent: str | None = None) -> None:
        if session in self._sessions:
            raise ContractError(f"A session is opened once; '{session}' is open. End it first.")
        made = Session(name=session, noise_key=noise_key)
        if parent is not None:
            source = self._idle(parent)
            made.tokens, made.full = list(source.tokens), source.full
            if source.lane is not None:
                self._forward.hold(made, source.lane, source.cached)
        if not self._sessions:
            self._forward.refresh()
        self._sessions[session] = made

    def end(self, session: str) -> None:
        found = self._find(session)
        jobs = [*self._schedule.active, *self._schedule.waiting] if found.busy else []
        for job in jobs:
            if job.session is found and not job.future.done():
                job.future.set_exception(
                    EngineError(f"Session '{session}' ended while generating.")
                )
        self._forward.leave(found)
        del self._sessions[session]

    def _find(self, session: str) -> Session:
        if session not in self._sessions:
            raise ContractError(f"A session is opened before use; '{session}' is not. Open it.")
        return self._sessions[session]

    def _idle(self, session: str) -> Session:
        found = self._find(session)
        if found.busy:
            raise ContractError(
                f"A session does one thing at a time; '{session}' is generating. Await it first."
            )
        if found.failed is not None:
            raise EngineError(f"Session '{session}' cannot go on: {found.failed}")
        return found

    # -- generation -------------------------------------------------------------------------------
    async def generate(
        self, session: str, token_ids: Ints, *, sampling: Sampling, stop: Sequence[str] = ()
    ) -> Completion:
        found, started = self._idle(session), time.perf_counter()
        rule = self._rule(sampling)
        ending = self._stops.ending(stop)
        new = self._checked(token_ids)
        room = self._context_length - len(found.tokens) - len(new)
        found.full = found.full or room < 0
        if not found.full:
            found.tokens += new
        budget = 0 if found.full else min(sampling.max_tokens, room)
        if budget <= 0:
            return self._completion([], [], "length", None, started)
        if not found.tokens:
            raise ContractError(f"Generation begins after a token; '{session}' has none.")
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        found.busy = True
        self._schedule.waiting.append(
            Job(
                session=found,
                rule=rule,
                ending=ending,
                budget=budget,
                future=future,
                started=started,
            )
        )
        self._wake()
        try:
            return await future
        except asyncio.CancelledError:
            found.failed = "a generation was cancelled."
            raise
        finally:
            found.busy = False

    async def score(self, prompt_ids: Ints, continuation_ids: Ints) -> Floats:
        prompt, continuation = self._checked(prompt_ids), self._checked(continuation_ids)
        size = len(prompt) + len(continuation)
        if not prompt or size > self._context_length:
            raise ContractError(
                f"Scoring needs a prompt of at least one token and at most {self._context_length} "
                f"tokens together; got {len(prompt)} and {len(continuation)}."
            )
        ids = torch.tensor([[*prompt, *continuation]], device=self._model.device)
        where = torch.arange(size, device=ids.device)[None] >= len(prompt)
        with torch.inference_mode():
            scores = token_logprobs(self._model, ids, where=where)
        return scores.logprobs[0, len(prompt) :].cpu().numpy()

    def load_weights(self, weights: Mapping[str, Any], policy_version: int) -> None:
        if self._sessions:
            raise ContractError(
                f"Weights change between sessions only; {len(self._sessions)} are open. End them."
            )
        copy_weights(self._model, weights)
        self._policy_version = policy_version

    def _rule(self, sampling: Sampling) -> Rule:
        key = sampling.temperature, sampling.top_p, tuple(sampling.forbidden)
        if key not in self._rules:
            if sampling.temperature < 0 or not 0 < sampling.top_p <= 1:
                raise ConfigError(
                    "temperature must be 0 or more and top_p in (0, 1]; got "
                    f"temperature={sampling.temperature}, top_p={sampling.top_p}."
                )
            forbidden = tuple(self._stops.token(text) for text in sampling.forbidden)
            rule = Rule(temperature=key[0], top_p=key[1], forbidden=forbidden)
            self._rules[key] = rule
        return self._rules[key]

    def _checked(self, token_ids: Ints) -> list[int]:
        ids: list[int] = np.asarray(token_ids, np.int64).tolist()
        if ids and (min(ids) < 0 or max(ids) >= self._size):
            raise ContractError(
                f"Token ids lie in [0, {self._size}); got {min(ids)} to {max(ids)}."
            )
        return ids

    # -- the background task ----------------------------------------------------------------------
    def _wake(self) -> None:
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            while len(self._schedule):
                for _ in range(_YIELDS):
                    await asyncio.sleep(0)
                self._step()
        except Exception as error:  # whatever it is, no caller may wait for ever
            self._fail(error)
        except asyncio.CancelledError:
            for job in self._schedule.clear():
                job.future.cancel()
            raise

    def _step(self) -> None:
        feeds = self._schedule.plan()
        if not feeds:
            return
        with torch.inference_mode():
            fed = self._forward(feeds)
            jobs = [job for feed in fed.feeds for job in feed.jobs]
            if not jobs:
                return
            rows = [row for row, feed in enumerate(fed.feeds) for _ in feed.jobs]
            drawn = draw(fed.logits, rows, [job.rule for job in jobs], self._noise(jobs))
        for job, token, logprob in zip(jobs, drawn.token_ids, drawn.logprobs, strict=True):
            self._take(job, token, logprob)

    def _noise(self, jobs: Sequence[Job]) -> NDArray[np.float64]:
        """[R] one uniform number per row, from its session's key and the position it fills."""
        keys = [job.session.noise_key for job in jobs]
        return uniforms(keys, [len(job.session.tokens) for job in jobs])

    def _take(self, job: Job, token: int, logprob: float) -> None:
        """Add a sampled token, and finish the job where it ends."""
        job.session.tokens.append(token)
        job.sampled.append(token)
        job.logprobs.append(logprob)
        reason: FinishReason | None = None
        stop = None
        if token in job.ending.candidates:
            stop = self._stops.stopped(job.ending, job.sampled)
            reason = "stop" if stop else "eos" if token in job.ending.eos else None
        if reason is None and len(job.sampled) >= job.budget:
            reason = "length"
        if reason is not None and not job.future.done():
            made = self._completion(job.sampled, job.logprobs, reason, stop, job.started)
            job.future.set_result(made)

    def _completion(
        self,
        token_ids: Sequence[int],
        logprobs: Sequence[float],
        reason: FinishReason,
        stop: str | None,
        started: float,
    ) -> Completion:
        return Completion(
            token_ids=np.asarray(token_ids, np.int64),
            logprobs=np.asarray(logprobs, np.float32),
            policy_version=self._policy_version,
            finish_reason=reason,
            stop=stop,
            seconds=time.perf_counter() - started,
        )

    def _fail(self, error: Exception) -> None:
        cause = f"{type(error).__name__}: {error}"
        for job in self._schedule.clear():
            job.session.failed = cause
            if not job.future.done():
                failure = EngineError(f"The engine could not generate. {cause}")
                failure.__cause__ = error
                job.future.set_exception(failure)


part = TransformersEngine
