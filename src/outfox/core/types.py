"""What passes from stage to stage. Frozen: no stage fills in a field of its input.

    Task ─rollout─▶ Trajectory ─rubric─▶ Score ─credit─▶ Sample ─pack─▶ Batch ─trainer─▶ Report

Tokens and their owners are in `core/ledger.py`; everything from Score on in `core/results.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from outfox.core.errors import ContractError
from outfox.core.ledger import Completion, Ledger, Span

JSON: TypeAlias = Any
"""None, bool, int, float, str, or lists and string-keyed dicts of these."""

Role = Literal["system", "user", "assistant", "tool"]
ToolStatus = Literal["ok", "empty", "error", "timeout", "crashed", "refused", "truncated"]
CALL_FAILED: tuple[ToolStatus, ...] = ("error", "timeout", "crashed")
"""Statuses of calls that a fault of the tool, or its arguments, kept from an answer."""
StopReason = Literal["answer", "max_turns", "max_tokens", "malformed", "done", "error"]
"""`answer`, `done` (the environment ended it); exhausted by the policy: `max_turns`, `max_tokens`,
`malformed`; `error`: a fault outside the policy."""


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
    poison: str | None = None
    """The wrong value that a tampered passage asserts; for metrics, never shown to a policy."""

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draft:
    """What a policy hands to the rollout: an action, a parse error, or a pause for a reading."""

    text: str
    """Policy text of the turn so far, nothing else."""
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
        return sum(
            len(segment.token_ids)
            for ledger in self.ledgers
            for segment in ledger.segments
            if segment.owner == "policy"
        )


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
