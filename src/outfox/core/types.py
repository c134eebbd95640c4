"""What passes from stage to stage. Frozen: no stage fills in a field of its input.

    Task ─rollout─▶ Trajectory ─rubric─▶ Score ─credit─▶ Sample ─pack─▶ Batch ─trainer─▶ Report

Every token array is full length and indexed like `token_ids`; `logprobs[t]` belongs to
`token_ids[t]`. The shift by one between inputs and targets happens in `policies/logprobs.py` only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from outfox.core.errors import ContractError

JSON: TypeAlias = Any
"""None, bool, int, float, str, or lists and string-keyed dicts of these."""
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]
Bools: TypeAlias = NDArray[np.bool_]

Role = Literal["system", "user", "assistant", "tool"]
Owner = Literal["prompt", "policy", "environment"]
ToolStatus = Literal["ok", "empty", "error", "timeout", "refused", "truncated"]
StopReason = Literal["answer", "max_turns", "max_tokens", "malformed", "done", "error"]
"""`answer`, `done` (the environment ended it); exhausted by the policy: `max_turns`, `max_tokens`,
`malformed`; `error`: a fault outside the policy."""
FinishReason = Literal["stop", "eos", "length"]
"""`stop`: a stop string was completed; `eos`; `length`: the token budget ran out."""


def _no_json() -> dict[str, JSON]:
    return {}


# -- chat -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call that the policy asks for."""

    id: str
    name: str
    arguments: Mapping[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One OpenAI-style chat item."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What a policy is told of a tool: name, one-line purpose, JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One problem. Only rewards may see `reference`; `metadata` may hold labels for them too."""

    task_id: str
    prompt: tuple[Message, ...]
    reference: JSON
    metadata: Mapping[str, JSON] = field(default_factory=_no_json)


# -- what tools return ----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One passage that a tool returned."""

    id: str
    text: str
    title: str = ""
    source: str = ""
    date: str | None = None

    @property
    def hash(self) -> str:
        """Content hash: the same text from another id is the same evidence."""
        return hashlib.blake2b(self.text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What one tool call came to. `content` is what the policy reads."""

    tool_call_id: str
    name: str
    content: str
    documents: tuple[Document, ...] = ()
    status: ToolStatus = "ok"
    error: str | None = None
    seconds: float = 0.0
    """Wall-clock seconds; never read by a reward in deterministic mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How an environment begins: the messages that the policy sees first, and its tools."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What an environment answers to one policy message."""

    messages: tuple[Message, ...] = ()
    results: tuple[ToolResult, ...] = ()
    done: bool = False
    truncated: bool = False
    """True where rendering cut it to the token limit."""
    history: tuple[Message, ...] | None = None
    """A rewritten history: the conversation goes on in a new ledger."""


# -- what the policy did --------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A parsed decision: either tool calls, or an answer."""

    calls: tuple[ToolCall, ...] = ()
    answer: str | None = None
    citations: tuple[str, ...] = ()
    """Document ids that the answer cites, e.g. `[d12]` in `Paris [d12]`; stripped from `answer`."""


ParseFault = Literal[
    "no_action", "empty_query", "empty_answer", "malformed_call", "unknown_tool", "several_answers"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseError:
    """Why no action could be read. `message` is shown to the policy."""

    fault: ParseFault
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A named range of tokens, `[start, end)`, relative to what holds it."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Completion:
    """Tokens that an engine sampled, exactly as sampled."""

    token_ids: Ints
    """[T]; includes the EOS or the token that completed a stop string, where there was one."""
    logprobs: Floats
    """[T], under the distribution they were sampled from."""
    policy_version: int
    finish_reason: FinishReason
    stop: str | None = None
    """The stop string that was completed."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draft:
    """What a policy hands to the rollout: an action, a parse error, or a pause for a reading."""

    text: str
    completion: Completion | None = None
    """None for policies without token ids (chat, scripted)."""
    action: Action | None = None
    error: ParseError | None = None
    paused: str | None = None
    """Name of the span that just ended, where a reading is due; then `act` is called again."""
    spans: tuple[Span, ...] = ()
    """Over the completion's tokens."""
    flags: tuple[str, ...] = ()
    """E.g. `forged_observation`: the policy wrote what only an environment may write."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turn:
    """One policy message and what came back. A reading splits it into several completions."""

    text: str
    """All policy text of the turn, nothing else."""
    completions: tuple[Completion, ...] = ()
    action: Action | None = None
    error: ParseError | None = None
    observation: Observation | None = None
    readings: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segment:
    """A run of tokens with one owner."""

    owner: Owner
    token_ids: Ints
    """[T]"""
    logprobs: Floats | None = None
    """[T], for policy segments."""
    policy_version: int | None = None
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ledger:
    """Append-only record of who wrote which token. Masks and alignment are derived from it.

    A prompt of 2, 3 policy tokens, 2 observation tokens, 2 policy tokens:

        token_ids  p p a a a o o b b
        loss_mask  0 0 1 1 1 0 0 1 1
    """

    agent: str = "policy"
    segments: tuple[Segment, ...] = ()

    def append(self, segment: Segment) -> Ledger:
        return Ledger(agent=self.agent, segments=(*self.segments, segment))

    def __len__(self) -> int:
        return sum(len(segment.token_ids) for segment in self.segments)

    @property
    def token_ids(self) -> Ints:
        """[T]"""
        return _join([segment.token_ids for segment in self.segments], np.int64)

    @property
    def loss_mask(self) -> Bools:
        """[T], True on policy tokens, by ownership alone."""
        masks = [np.full(len(s.token_ids), s.owner == "policy") for s in self.segments]
        return _join(masks, np.bool_)

    @property
    def logprobs(self) -> Floats:
        """[T], zero on tokens that the policy does not own."""
        rows = [
            np.zeros(len(s.token_ids), np.float32) if s.logprobs is None else s.logprobs
            for s in self.segments
        ]
        return _join(rows, np.float32)

    @property
    def spans(self) -> tuple[Span, ...]:
        """All spans, relative to the ledger's first token."""
        found: list[Span] = []
        offset = 0
        for segment in self.segments:
            found += [
                Span(name=s.name, start=s.start + offset, end=s.end + offset) for s in segment.spans
            ]
            offset += len(segment.token_ids)
        return tuple(found)

    @property
    def policy_version(self) -> int | None:
        """The oldest version that wrote a token."""
        versions = [s.policy_version for s in self.segments if s.policy_version is not None]
        return min(versions, default=None)


def _join(rows: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(rows).astype(dtype, copy=False) if rows else np.zeros(0, dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeKey:
    """Names one episode; all its randomness is derived from it."""

    seed: int
    step: int
    group_id: str
    sibling: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trajectory:
    """One finished episode: what happened, never how good it was.

    Rewards read the views below, so tool text can never be taken for policy text.
    """

    task: Task
    group_id: str
    sibling: int
    turns: tuple[Turn, ...]
    stop_reason: StopReason
    ledgers: tuple[Ledger, ...] = ()
    final_state: JSON = None
    error: str | None = None
    """What failed outside the policy; then `stop_reason` is `error`."""

    @property
    def answer(self) -> str | None:
        """The final answer's text, or None where the episode ended without one."""
        if not self.turns or self.turns[-1].action is None:
            return None
        return self.turns[-1].action.answer

    @property
    def citations(self) -> tuple[str, ...]:
        action = self.turns[-1].action if self.turns else None
        return action.citations if action else ()

    @property
    def policy_text(self) -> str:
        """Everything that the policy wrote, turn by turn; no tool text."""
        return "\n".join(turn.text for turn in self.turns)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Well-formed calls in order."""
        return tuple(call for turn in self.turns if turn.action for call in turn.action.calls)

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """Tool results in call order."""
        return tuple(r for turn in self.turns if turn.observation for r in turn.observation.results)

    @property
    def documents(self) -> tuple[Document, ...]:
        """Documents that the environment returned, in order, with repeats."""
        return tuple(document for result in self.results for document in result.documents)

    @property
    def flags(self) -> frozenset[str]:
        return frozenset(flag for turn in self.turns for flag in turn.flags)

    @property
    def policy_tokens(self) -> int:
        """Number of policy-owned tokens over all ledgers."""
        return sum(int(ledger.loss_mask.sum()) for ledger in self.ledgers)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Siblings: trajectories of one task occurrence, compared with each other.

    Raises ContractError when a member belongs to another task or group.
    """

    group_id: str
    trajectories: tuple[Trajectory, ...]

    def __post_init__(self) -> None:
        if not self.trajectories:
            raise ContractError(f"a group holds at least one trajectory; {self.group_id} has none")
        task_id = self.trajectories[0].task.task_id
        for member in self.trajectories:
            if member.group_id != self.group_id or member.task.task_id != task_id:
                raise ContractError(
                    "siblings share group and task; "
                    f"{self.group_id} ({task_id}) was given {member.group_id} "
                    f"({member.task.task_id}): give each task occurrence a group id of its own"
                )


# -- rewards --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A signal's measurement."""

    value: float
    per_turn: tuple[float, ...] | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplicable:
    """The signal says nothing about this trajectory."""

    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalError:
    """The signal failed; the trajectory leaves the baseline, never a silent 0."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalTimeout:
    """The signal did not answer in time."""

    why: str


SignalResult: TypeAlias = Value | NotApplicable | SignalError | SignalTimeout

Outcome = Literal["right", "wrong", "unsupported", "abstained", "unanswered", "gated", "failed"]
"""`unsupported`: right, but without the evidence its domain demands; `unanswered`: ended without an
answer, valued as wrong; `failed`: a fault outside the policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How good a trajectory was."""

    total: float | None
    """None where a fault outside the policy left it unscored: out of the baseline, advantage 0."""
    outcome: Outcome
    results: Mapping[str, SignalResult]
    """By signal name, as measured."""
    parts: Mapping[str, float]
    """Contribution of each rubric part; they sum to `total`."""
    gate: str | None = None
    """The gate that fired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredGroup:
    """A group with one score per trajectory, in order."""

    group: Group
    scores: tuple[Score, ...]


# -- learning -------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One stretch of a demonstration: policy text, an environment reading, or an observation."""

    text: str = ""
    """Policy text, or (`owner` environment) a reading inside the policy's turn."""
    messages: tuple[Message, ...] = ()
    """Observation messages; then `text` is empty."""
    owner: Owner = "policy"
    trained: bool = True
    """False: policy text that is shown but not imitated (a decision by coin, a context)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """Something to imitate, whole or cut off where it should not teach further."""

    name: str
    """What it teaches: `closed_book`, `reading`, `episode`, ..."""
    opening: Opening
    events: tuple[Event, ...]
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrajectoryCredit:
    """Advantages of one trajectory."""

    advantages: tuple[Floats, ...]
    """One [T] per ledger, zero outside policy tokens."""
    left_out: str | None = None
    """Why it carries no signal: `unscored`, `group_of_one`, `equal_totals`."""
    returns: tuple[Floats, ...] | None = None
    """One [T] per ledger; targets of a value head."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """One training sequence. All arrays are [T]."""

    token_ids: Ints
    loss_mask: Bools
    """True on trained tokens."""
    rollout_logprobs: Floats
    advantages: Floats
    weights: Floats
    """Per-token weight of the loss; 1 normally."""
    objective: Literal["policy", "imitation"] = "policy"
    spans: tuple[Span, ...] = ()
    policy_version: int | None = None
    group_id: str = ""
    returns: Floats | None = None

    def __len__(self) -> int:
        return len(self.token_ids)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Samples of one optimiser step, cut into right-padded micro-batches of similar length."""

    micro: tuple[tuple[Sample, ...], ...]

    @property
    def samples(self) -> tuple[Sample, ...]:
        return tuple(sample for part in self.micro for sample in part)

    @property
    def padding_waste(self) -> float:
        """Share of padded positions, 0 to 1."""
        real = sum(len(sample) for sample in self.samples)
        full = sum(len(part) * max(map(len, part)) for part in self.micro if part)
        return 1 - real / full if full else 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Annotations:
    """What a trainer computed for samples, one [T] each, where it was asked for."""

    old_logprobs: tuple[Floats, ...] | None = None
    ref_logprobs: tuple[Floats, ...] | None = None
    values: tuple[Floats, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    """What an update did. Metric names follow TRL where it has one."""

    policy_version: int
    optimizer_step: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepResult:
    """All that one step of `loop.train` made."""

    step: int
    stage: str
    groups: tuple[ScoredGroup, ...]
    credits: tuple[tuple[TrajectoryCredit, ...], ...]
    report: UpdateReport
    metrics: Mapping[str, float]
    """Free of clock readings."""
    timings: Mapping[str, float]
    """Seconds by part of the step."""
