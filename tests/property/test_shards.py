"""Trajectories and scores come back from Parquet exactly as they went in."""

from __future__ import annotations

import dataclasses
import io

import numpy as np
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from outfox.core.ledger import Completion, Ledger, Segment, Span
from outfox.core.results import (
    NotApplicable,
    Score,
    SignalError,
    SignalTimeout,
    TrajectoryCredit,
    Value,
)
from outfox.core.types import (
    Action,
    Document,
    Message,
    Observation,
    ParseError,
    Task,
    ToolCall,
    ToolResult,
    Trajectory,
    Turn,
)
from outfox.store import shards

text = st.text(st.characters(), max_size=12)  # any code point, lone surrogates included
name = st.text("abcdefg_/:-", min_size=1, max_size=8)
number = st.floats(allow_nan=False)
json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | number | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
json_object = st.dictionaries(text, json_value, max_size=3)


def build(kind, **fields):
    return st.builds(kind, **fields)


def several(strategy, size=3):
    return st.lists(strategy, max_size=size).map(tuple)


calls = build(ToolCall, id=text, name=text, arguments=json_object)
messages = build(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=text,
    tool_calls=several(calls, 2),
    tool_call_id=st.none() | text,
)
documents = build(Document, id=text, text=text, title=text, source=text, date=st.none() | text)
tool_results = build(
    ToolResult,
    tool_call_id=text,
    name=text,
    content=text,
    documents=several(documents, 2),
    status=st.sampled_from(["ok", "empty", "error", "timeout", "refused", "truncated"]),
    error=st.none() | text,
    seconds=number,
)
observations = build(
    Observation,
    messages=several(messages, 2),
    results=several(tool_results, 2),
    done=st.booleans(),
    truncated=st.booleans(),
    history=st.none() | several(messages, 2),
)
spans = build(Span, name=name, start=st.integers(0, 9), end=st.integers(0, 9))


@st.composite
def arrays(draw):
    ids = draw(st.lists(st.integers(0, 2**62), max_size=5))
    floats = st.floats(width=32, allow_nan=True)
    logprobs = draw(st.lists(floats, min_size=len(ids), max_size=len(ids)))
    return np.asarray(ids, np.int64), np.asarray(logprobs, np.float32)


@st.composite
def completions(draw):
    ids, logprobs = draw(arrays())
    return Completion(
        token_ids=ids,
        logprobs=logprobs,
        policy_version=draw(st.integers(0, 9)),
        finish_reason=draw(st.sampled_from(["stop", "eos", "length"])),
        stop=draw(st.none() | name),
        seconds=draw(number),
    )


@st.composite
def segments(draw):
    ids, logprobs = draw(arrays())
    return Segment(
        owner=draw(st.sampled_from(["prompt", "policy", "environment"])),
        token_ids=ids,
        logprobs=draw(st.sampled_from([None, logprobs])),
        policy_version=draw(st.none() | st.integers(0, 9)),
        spans=draw(several(spans)),
    )


turns = build(
    Turn,
    text=text,
    completions=several(completions(), 2),
    action=st.none()
    | build(Action, calls=several(calls, 2), answer=st.none() | text, citations=several(text)),
    error=st.none()
    | build(ParseError, fault=st.sampled_from(["no_action", "empty_query"]), message=text),
    observation=st.none() | observations,
    readings=several(name),
    flags=several(name),
)
trajectory = build(
    Trajectory,
    task=build(
        Task,
        task_id=name,
        prompt=st.lists(messages, min_size=1, max_size=2).map(tuple),
        reference=json_value,
        metadata=json_object,
    ),
    group_id=name,
    sibling=st.integers(0, 99),
    turns=several(turns),
    stop_reason=st.sampled_from(["answer", "max_turns", "malformed", "done", "error"]),
    ledgers=several(build(Ledger, agent=name, segments=several(segments())), 2),
    final_state=json_value,
    error=st.none() | text,
)


def same(left, right) -> bool:
    """Equality that looks into dataclasses and arrays; types and dtypes must agree too."""
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right, equal_nan=True)
    if dataclasses.is_dataclass(left):
        names = [field.name for field in dataclasses.fields(left)]
        return all(same(getattr(left, each), getattr(right, each)) for each in names)
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    return left == right


def through_file(table):
    return pq.read_table(io.BytesIO(shards.to_bytes(table)))


@given(st.lists(trajectory, min_size=1, max_size=3))
def test_trajectories_come_back_exactly(originals):
    table = through_file(shards.trajectory_table(7, originals))
    restored = shards.trajectories(table, shards.clock(originals))
    assert all(map(same, originals, restored))
    assert len(originals) == len(restored)
    assert table.column("calls").to_pylist() == [len(t.calls) for t in originals]


@given(trajectory)
def test_without_clock_readings_only_seconds_are_lost(original):
    fast, slow = (
        dataclasses.replace(
            original,
            turns=tuple(
                dataclasses.replace(
                    turn,
                    completions=tuple(
                        dataclasses.replace(c, seconds=seconds) for c in turn.completions
                    ),
                )
                for turn in original.turns
            ),
        )
        for seconds in (0.25, 9.0)
    )
    first, second = (shards.to_bytes(shards.trajectory_table(0, [t])) for t in (fast, slow))
    assert first == second


results = (
    build(Value, value=number, per_turn=st.none() | several(number), why=text)
    | build(NotApplicable, why=text)
    | build(SignalError, why=text)
    | build(SignalTimeout, why=text)
)
score = build(
    Score,
    total=st.none() | number,
    outcome=st.sampled_from(["right", "wrong", "abstained", "failed"]),
    results=st.dictionaries(name, results, max_size=3),
    parts=st.dictionaries(name, number, max_size=3),
    gate=st.none() | name,
)


@given(trajectory, score, st.none() | name)
def test_scores_and_advantages_come_back_exactly(original, given_score, left_out):
    advantages = tuple(np.linspace(-1, 1, len(x)).astype(np.float32) for x in original.ledgers)
    credit = TrajectoryCredit(advantages=advantages, left_out=left_out)
    table = through_file(shards.score_table(3, [original], [given_score], [credit]))
    key = (original.group_id, original.sibling)
    assert same(shards.scores(table)[key], given_score)
    assert same(shards.credits(table)[key], credit)
