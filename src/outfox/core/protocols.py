"""The seams. A part fits one of these protocols; nothing inherits from anything.

    TaskSource ─▶ Environment ◀─messages─▶ Conversation (of a Policy: engine + codec) ─▶ Trajectory
    Trajectory ─Signal, Rubric─▶ Score ─Credit─▶ Sample ─Trainer (Loss)─▶ weights ─▶ Engine

A fake and a conformance check for each ship in `outfox.testing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from outfox.core.ledger import Completion, Floats, Ints, Ledger, Span
from outfox.core.results import (
    Annotations,
    Batch,
    Sample,
    Score,
    ScoredGroup,
    SignalResult,
    TrajectoryCredit,
    UpdateReport,
)
from outfox.core.types import (
    JSON,
    Action,
    Document,
    Draft,
    EpisodeKey,
    Group,
    Message,
    Observation,
    Opening,
    ParseError,
    Task,
    ToolResult,
    ToolSpec,
    Trajectory,
)


@runtime_checkable
class Stateful(Protocol):
    """A part with memory. Its next call after `restore(state())` equals the uninterrupted one."""

    def state(self) -> JSON: ...
    def restore(self, state: JSON) -> None: ...


class TaskSource(Protocol):
    """Where tasks come from. `take` is pure in its arguments and the source's state."""

    def take(self, step: int, count: int) -> Sequence[Task]: ...


# -- acting ---------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are drawn. `temperature` 0 is greedy."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 256
    forbidden: tuple[str, ...] = ()
    """Strings whose single token is never sampled (closed-book probes forbid `<search>`); a string
    that is not one token of the tokenizer is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine can do; an option that needs more is refused at start."""

    token_ids: bool = True
    logprobs: bool = True
    fork: bool = True
    score: bool = True
    load_weights: bool = True


class Engine(Protocol):
    """Generates and scores tokens. A session keeps its KV cache over turns."""

    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def policy_version(self) -> int: ...
    @property
    def context_length(self) -> int:
        """Most tokens a session may hold."""
        ...

    def open(self, session: str, *, noise_key: int, parent: str | None = None) -> None:
        """Begin a session; with `parent`, a fork that shares all its tokens so far."""
        ...

    async def generate(
        self, session: str, token_ids: Ints, *, sampling: Sampling, stop: Sequence[str] = ()
    ) -> Completion:
        """Append `token_ids` [N] to the session, then sample until stop, EOS or the budget.

        Stop strings are looked for in newly sampled text only. The draw at absolute position p of
        the session is a function of (noise_key, p).
        """
        ...

    async def score(self, prompt_ids: Ints, continuation_ids: Ints) -> Floats:
        """[len(continuation_ids)] logprobs of the continuation at temperature 1."""
        ...

    def end(self, session: str) -> None: ...
    def load_weights(self, weights: Mapping[str, Any], policy_version: int) -> None:
        """Raises ContractError while sessions are open."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rendered:
    """Messages as tokens."""

    token_ids: Ints
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A policy text as an action, a typed error, or neither yet (`paused`)."""

    action: Action | None = None
    error: ParseError | None = None
    paused: str | None = None
    flags: tuple[str, ...] = ()


class Codec(Protocol):
    """How a policy writes an action, and how messages become tokens."""

    @property
    def stop(self) -> tuple[str, ...]:
        """Strings that end a completion: ends of actions, and of spans where a reading is due."""
        ...

    @property
    def calls(self) -> tuple[str, ...]:
        """Strings that begin a call; a closed-book policy samples none of them."""
        ...

    def render(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Rendered:
        """The opening, up to where the policy begins to write."""
        ...

    def extend(self, messages: Sequence[Message], limit: int | None = None) -> Rendered:
        """Observation messages that follow a policy turn, up to where the policy writes again.

        `limit`: most tokens; an exact fit is kept; beyond it documents are cut, closing tags kept.
        """
        ...

    def encode(self, text: str) -> Ints:
        """Text inside a turn (a reading, a demonstration) as tokens."""
        ...

    def decode(self, token_ids: Ints) -> str: ...
    def parse(self, text: str, *, finished: bool = True, after_observation: bool = False) -> Parsed:
        """The policy's text of the turn so far. `finished` is False when more may follow.

        `after_observation`: the turn follows one (it names the span of a pause).
        """
        ...

    def write(self, action: Action, thought: str = "") -> str:
        """The text that `parse` reads back as this action."""
        ...

    def spans(
        self, token_ids: Ints, *, after_observation: bool, continued: bool = False
    ) -> tuple[Span, ...]:
        """Named token ranges of one completion.

        `after_observation`: its turn follows one; `continued`: it goes on after a pause.
        """
        ...


class Conversation(Protocol):
    """One agent's side of one episode; the rollout drives it, it keeps the token ledger."""

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        """Empty for policies without token ids."""
        ...

    async def act(self, *, max_new_tokens: int) -> Draft: ...
    def observe(self, messages: Sequence[Message], *, limit: int | None) -> bool:
        """Append environment messages; True where they were cut to `limit` tokens."""
        ...

    def insert(self, text: str) -> None:
        """Append an environment-owned reading inside the policy's turn."""
        ...

    def rewrite(self, messages: Sequence[Message]) -> None:
        """Go on from a rewritten history, in a new ledger."""
        ...

    async def close(self) -> None: ...


class Policy(Protocol):
    """What acts. `trainable` is False for policies without token ids; training refuses those."""

    @property
    def trainable(self) -> bool: ...
    @property
    def context_length(self) -> int | None: ...
    def begin(self, key: EpisodeKey, task: Task, opening: Opening) -> Conversation: ...


class Environment(Protocol):
    """One episode: single use, messages only. Made by `EnvironmentFactory`."""

    async def reset(self) -> Opening: ...
    async def step(self, message: Message) -> Observation: ...
    def final(self) -> JSON: ...
    async def close(self) -> None: ...


class EnvironmentFactory(Protocol):
    def __call__(self, task: Task, seed: int) -> Environment: ...


class Tool(Protocol):
    """A callable with a spec; made anew for each episode."""

    @property
    def spec(self) -> ToolSpec: ...
    async def __call__(self, call_id: str, arguments: Mapping[str, JSON]) -> ToolResult: ...


class Retriever(Protocol):
    """Finds documents. Deterministic: ties are broken by document order."""

    def search(self, queries: Sequence[str], top_k: int) -> list[list[Document]]: ...
    def scores(self, query: str, top_k: int) -> list[tuple[Document, float]]: ...


# -- rewards --------------------------------------------------------------------------------------
Family = Literal["outcome", "necessity", "evidence", "cost", "safety"]
Solvable = Literal["solvable", "unsolvable", "undetermined"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SignalContext:
    """What a signal may know besides the trajectory."""

    group: Group
    solvable: Solvable = "undetermined"
    must_ground: bool = False
    right: tuple[bool | None, ...] = ()
    """Per sibling: right? None where unscored. Empty while outcomes are computed."""
    supported: tuple[bool | None, ...] = ()
    """Per sibling: does retrieved text support its answer?"""
    settings: Mapping[str, JSON]
    step: int = 0
    """Where the training stands, as the rubric's schedules count."""


class Signal(Protocol):
    """One measurement. A value outside `range` becomes a SignalError."""

    @property
    def name(self) -> str: ...
    @property
    def range(self) -> tuple[float, float]: ...
    @property
    def family(self) -> Family: ...
    @property
    def scope(self) -> Literal["trajectory", "group"]: ...
    def __call__(self, trajectory: Trajectory, context: SignalContext) -> SignalResult: ...


class Rubric(Protocol):
    """Signals combined into one total per trajectory."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest reachable total, by interval arithmetic."""
        ...

    def score(self, group: Group, *, step: int) -> tuple[Score, ...]: ...
    def after_step(self, groups: Sequence[ScoredGroup]) -> None:
        """Learn from a training step, e.g. move a budget's multiplier; nothing for most."""
        ...


# -- learning -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CreditNotes:
    """What credit may need besides totals."""

    values: Sequence[Sequence[Floats]] = ()
    """Per trajectory (all groups in order), per ledger: [T] value estimates."""


class Credit(Protocol):
    """Totals to advantages; numpy only. One tuple per group, one credit per trajectory."""

    def __call__(
        self, groups: Sequence[ScoredGroup], notes: CreditNotes
    ) -> tuple[tuple[TrajectoryCredit, ...], ...]: ...


Need = Literal["old_logprobs", "ref_logprobs", "values"]


class Trainer(Protocol):
    """Owns the trained weights and the optimiser."""

    @property
    def policy_version(self) -> int: ...
    @property
    def micro_tokens(self) -> int:
        """Most tokens together in a forward and backward pass; the loop packs by it."""
        ...

    @property
    def needs(self) -> frozenset[Need]:
        """What `annotate` must compute for the configured loss; on-policy GRPO needs nothing."""
        ...

    def annotate(self, samples: Sequence[Sample], needs: frozenset[Need]) -> Annotations: ...
    def update(
        self, batches: Sequence[Batch], annotations: Annotations | None = None
    ) -> UpdateReport: ...
    def weights(self) -> Mapping[str, Any]: ...
    def save(self, folder: Path) -> None: ...
    def load(self, folder: Path) -> None: ...


# -- looking on -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedRun:
    """What a tracker may know when a run begins or goes on."""

    name: str
    folder: Path
    """The run folder; files of the tracker's own belong below it."""
    config: Mapping[str, JSON]
    """The recipe with every setting written out."""
    id: str | None = None
    """What `begin` returned when the run began; None at first."""


class Tracker(Protocol):
    """Shows a run elsewhere. All calls come from one thread, in order; what one raises is one
    warning of the run's, and the last call."""

    def begin(self, run: TrackedRun) -> str:
        """Begin, or go on where `run.id` is given; returns the name by which to go on later."""
        ...

    def log(self, step: int, metrics: Mapping[str, float], samples: Sequence[str]) -> None:
        """Finite numbers of one step and, at some steps, a few episodes as text. Steps rise, and
        none comes twice, however often a run is resumed."""
        ...

    def end(self, summary: Mapping[str, float] | None) -> None:
        """The result, e.g. `after/accuracy`; None where the run stops before its end."""
        ...
