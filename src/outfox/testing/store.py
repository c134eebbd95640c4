"""Made-up episodes with real ledgers, for tests and for looking at pages without a run.

words = Words()
moves = [Move(thought="Lyon country : France", reading="[sure]", query="France currency",
              documents=(passage,)),
         Move(thought="France currency : Euro", answer="Euro")]
trajectory = made_up(task, moves, words=words)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outfox.core.ledger import Completion, Floats, Ints, Ledger, Owner, Segment, Span
from outfox.core.seeding import derive, uniforms
from outfox.core.types import (
    Action,
    Document,
    Message,
    Observation,
    StopReason,
    Task,
    ToolCall,
    ToolResult,
    ToolStatus,
    Trajectory,
    Turn,
)

_TOKEN = re.compile(r"</?\w+>|\[\w+\]|\w+|\s|.", re.DOTALL)


class Words:
    """A tokenizer of words, tags and single signs; ids in order of first use."""

    def __init__(self) -> None:
        self._words: list[str] = []

    def encode(self, text: str) -> Ints:
        """[T]"""
        found = [self._id(word) for word in _TOKEN.findall(text)]
        return np.asarray(found, np.int64)

    def decode(self, token_ids: Ints) -> str:
        return "".join(self._words[int(token)] for token in token_ids)

    def _id(self, word: str) -> int:
        if word not in self._words:
            self._words.append(word)
        return self._words.index(word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One turn: a thought, then a search or an answer."""

    thought: str
    reading: str | None = None
    query: str | None = None
    answer: str | None = None
    documents: tuple[Document, ...] = ()
    status: ToolStatus = "ok"


def made_up(
    task: Task,
    moves: Sequence[Move],
    *,
    words: Words,
    sibling: int = 0,
    group_id: str | None = None,
    stop_reason: StopReason = "answer",
) -> Trajectory:
    """The episode in which the policy made these moves; logprobs are made up, but repeatable."""
    question = "".join(f"{message.content}\n" for message in task.prompt)
    segments = [Segment(owner="prompt", token_ids=words.encode(question))]
    turns: list[Turn] = []
    for index, move in enumerate(moves):
        after = bool(index and moves[index - 1].query)
        written = _written(move, words, derive(task.task_id, sibling, index), after)
        segments += written
        observation = _observation(move, f"call-{index}")
        if observation:
            text = "".join(message.content for message in observation.messages)
            segments.append(Segment(owner="environment", token_ids=words.encode(text)))
        turns.append(_turn(move, index, written, observation, words))
    return Trajectory(
        task=task,
        group_id=group_id or f"0/{task.task_id}",
        sibling=sibling,
        turns=tuple(turns),
        stop_reason=stop_reason,
        ledgers=(Ledger(segments=tuple(segments)),),
    )


def _written(move: Move, words: Words, key: int, after: bool) -> list[Segment]:
    """The turn's segments: thought, reading where there is one, action."""
    name = "note" if after else "draft"
    head, _, value = move.thought.rpartition(" : ")
    thought = [
        (None, "<think>"),
        (None, head + " : " if head else ""),
        (name, value),
        (None, "</think>"),
    ]
    action: list[tuple[str | None, str]] = []
    if move.query is not None:
        action = [("decision", "<search>"), ("query", move.query), (None, "</search>")]
    elif move.answer is not None:
        action = [("decision", "<answer>"), ("answer", move.answer), (None, "</answer>")]
    if move.reading is None:
        return [_segment("policy", [*thought, *action], words, key)]
    return [
        _segment("policy", thought, words, key),
        _segment("environment", [(None, move.reading)], words, key),
        _segment("policy", action, words, key + 1),
    ]


def _segment(
    owner: Owner, parts: Sequence[tuple[str | None, str]], words: Words, key: int
) -> Segment:
    ids, spans, start = [np.zeros(0, np.int64)], list[Span](), 0
    for name, text in parts:
        ids.append(words.encode(text))
        if name and len(ids[-1]):
            spans.append(Span(name=name, start=start, end=start + len(ids[-1])))
        start += len(ids[-1])
    if owner != "policy":
        return Segment(owner=owner, token_ids=np.concatenate(ids))
    return Segment(
        owner=owner,
        token_ids=np.concatenate(ids),
        logprobs=_logprobs(key, start),
        policy_version=0,
        spans=tuple(spans),
    )


def _logprobs(key: int, count: int) -> Floats:
    draws = uniforms([key % 2**63] * count, range(count))
    return np.log(0.4 + 0.6 * draws).astype(np.float32)


def _observation(move: Move, call_id: str) -> Observation | None:
    if move.query is None:
        return None
    shown = "\n".join(f"[{d.id}] {d.text}" for d in move.documents) or f"({move.status})"
    content = f"<information>{shown}</information>"
    result = ToolResult(
        tool_call_id=call_id,
        name="search",
        content=content,
        documents=move.documents,
        status=move.status,
        error="the search service did not answer" if move.status == "error" else None,
        seconds=0.125,
    )
    message = Message(role="tool", content=content, tool_call_id=call_id)
    return Observation(messages=(message,), results=(result,))


def _turn(
    move: Move, index: int, written: list[Segment], observation: Observation | None, words: Words
) -> Turn:
    policy = [segment for segment in written if segment.owner == "policy"]
    call = ToolCall(id=f"call-{index}", name="search", arguments={"query": move.query or ""})
    return Turn(
        text="".join(words.decode(segment.token_ids) for segment in policy),
        completions=tuple(
            Completion(
                token_ids=segment.token_ids,
                logprobs=_logprobs(0, 0) if segment.logprobs is None else segment.logprobs,
                policy_version=0,
                finish_reason="stop",
                stop=words.decode(segment.token_ids[-1:]),
                seconds=0.25,
            )
            for segment in policy
        ),
        action=Action(calls=() if move.query is None else (call,), answer=move.answer),
        observation=observation,
        readings=() if move.reading is None else (move.reading,),
    )
