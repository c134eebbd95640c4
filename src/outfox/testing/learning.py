"""Fakes and conformance checks for Credit, Loss and Trainer, and episodes drawn as letters.

    episode("ppaaaoobb")      2 prompt, 3 policy, 2 environment, 2 policy tokens: two turns
    episode("ppaa|ppooaa")    `|` begins a second ledger

Letters: `p` prompt, `o` environment, `e` policy with token id 0 (an EOS that is also the pad id),
any other letter policy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from outfox.core.ledger import Completion, Floats, Ledger, Owner, Segment, Span
from outfox.core.protocols import Credit, CreditNotes, Need, Trainer
from outfox.core.results import (
    Annotations,
    Batch,
    Outcome,
    Sample,
    Score,
    ScoredGroup,
    SignalResult,
    TrajectoryCredit,
    UpdateReport,
)
from outfox.core.types import Group, Message, Task, Trajectory, Turn

PAD = 0
"""Token id of `e`, and what right padding is filled with."""


# -- made-up episodes -----------------------------------------------------------------------------
def episode(
    pattern: str, *, group_id: str = "0/q", sibling: int = 0, spans: Sequence[Span] = ()
) -> Trajectory:
    """A finished episode whose tokens are drawn as letters; `spans` lie in the first completion."""
    ledgers = tuple(_ledger(part, spans) for part in pattern.split("|"))
    turns = tuple(
        Turn(
            text="word " * len(segment.token_ids),
            completions=(
                Completion(
                    token_ids=segment.token_ids,
                    logprobs=np.full(len(segment.token_ids), -1.0, np.float32),
                    policy_version=0,
                    finish_reason="stop",
                ),
            ),
        )
        for ledger in ledgers
        for segment in ledger.segments
        if segment.owner == "policy"
    )
    task = Task(task_id="q", prompt=(Message(role="user", content="?"),), reference="x")
    return Trajectory(
        task=task,
        group_id=group_id,
        sibling=sibling,
        turns=turns,
        stop_reason="answer",
        ledgers=ledgers,
    )


def _ledger(pattern: str, spans: Sequence[Span]) -> Ledger:
    segments: list[Segment] = []
    first = True
    for owner, letters in groupby(enumerate(pattern), key=_owner_at):
        ids = [PAD if letter == "e" else 1 + place % 7 for place, letter in letters]
        policy = owner == "policy"
        segments.append(
            Segment(
                owner=owner,
                token_ids=np.array(ids, np.int64),
                logprobs=np.full(len(ids), -1.0, np.float32) if policy else None,
                policy_version=0 if policy else None,
                spans=tuple(spans) if policy and first else (),
            )
        )
        first = first and not policy
    return Ledger(segments=tuple(segments))


def _owner_at(place: tuple[int, str]) -> Owner:
    return _owner(place[1])


def _owner(letter: str) -> Owner:
    return "prompt" if letter == "p" else "environment" if letter == "o" else "policy"


def scored_group(
    totals: Sequence[float | None],
    *,
    patterns: Sequence[str] = ("ppaaaoobb",),
    group_id: str = "0/q",
    outcomes: Sequence[Outcome] | None = None,
    parts: Sequence[Mapping[str, float]] | None = None,
    results: Sequence[Mapping[str, SignalResult]] | None = None,
) -> ScoredGroup:
    """A group with these totals; patterns are repeated over the siblings."""
    count = len(totals)
    trajectories = tuple(
        episode(patterns[k % len(patterns)], group_id=group_id, sibling=k) for k in range(count)
    )
    scores = tuple(
        Score(
            total=total,
            outcome="failed" if total is None else outcomes[k] if outcomes else _guess(total),
            results=results[k] if results else {},
            parts=parts[k] if parts else {} if total is None else {"outcome": total},
        )
        for k, total in enumerate(totals)
    )
    return ScoredGroup(group=Group(group_id=group_id, trajectories=trajectories), scores=scores)


def _guess(total: float) -> Outcome:
    return "right" if total > 0 else "wrong"


def sample(
    pattern: str,
    *,
    advantage: float = 1.0,
    weight: float = 1.0,
    objective: str = "policy",
    seed: int = 0,
    vocabulary: int = 16,
) -> Sample:
    """A training sequence drawn as letters, with ids below `vocabulary`."""
    mask = np.array([_owner(letter) == "policy" for letter in pattern])
    ids = np.random.default_rng(seed).integers(1, vocabulary, len(pattern))
    ids[[letter == "e" for letter in pattern]] = PAD
    return Sample(
        token_ids=ids,
        loss_mask=mask,
        rollout_logprobs=np.where(mask, -2.0, 0.0).astype(np.float32),
        advantages=np.where(mask, advantage, 0.0).astype(np.float32),
        weights=np.full(len(pattern), weight, np.float32),
        objective="imitation" if objective == "imitation" else "policy",
    )


# -- fakes ----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class TotalCredit:
    """A Credit whose advantage is the total itself."""

    def __call__(
        self, groups: Sequence[ScoredGroup], notes: CreditNotes
    ) -> tuple[tuple[TrajectoryCredit, ...], ...]:
        return tuple(
            tuple(_total_credit(t, s) for t, s in zip(g.group.trajectories, g.scores, strict=True))
            for g in groups
        )


def _total_credit(trajectory: Trajectory, score: Score) -> TrajectoryCredit:
    rows = [(led.loss_mask * (score.total or 0.0)).astype(np.float32) for led in trajectory.ledgers]
    reason = "unscored" if score.total is None else None
    return TrajectoryCredit(advantages=tuple(rows), left_out=reason)


class FakeTrainer:
    """A Trainer without a model: one weight, which adds up what it was taught."""

    def __init__(self, needs: frozenset[Need] = frozenset()) -> None:
        self.batches: list[Batch] = []
        """All batches of all updates, in order."""
        self._needs = needs
        self._weight = 0.0
        self._policy_version = 0

    @property
    def policy_version(self) -> int:
        return self._policy_version

    @property
    def micro_tokens(self) -> int:
        return 4096

    @property
    def needs(self) -> frozenset[Need]:
        return self._needs

    def annotate(self, samples: Sequence[Sample], needs: frozenset[Need]) -> Annotations:
        zeros = tuple(np.zeros(len(sample), np.float32) for sample in samples)
        return Annotations(
            samples=tuple(samples),
            old_logprobs=zeros if "old_logprobs" in needs else None,
            ref_logprobs=zeros if "ref_logprobs" in needs else None,
            values=zeros if "values" in needs else None,
        )

    def update(
        self, batches: Sequence[Batch], annotations: Annotations | None = None
    ) -> UpdateReport:
        for batch in batches:
            self._weight += sum(float((s.advantages * s.weights).sum()) for s in batch.samples)
        self.batches += batches
        self._policy_version += 1
        return UpdateReport(
            policy_version=self._policy_version,
            optimizer_step=len(self.batches),
            metrics={"loss": -self._weight},
        )

    def weights(self) -> Mapping[str, Floats]:
        return {"weight": np.array([self._weight], np.float32)}

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        state = {"weight": self._weight, "policy_version": self._policy_version}
        (folder / "trainer.json").write_text(json.dumps(state))

    def load(self, folder: Path) -> None:
        state = json.loads((folder / "trainer.json").read_text())
        self._weight, self._policy_version = state["weight"], state["policy_version"]


# -- conformance ----------------------------------------------------------------------------------
def check_credit(
    credit: Credit, *, notes: Callable[[Sequence[ScoredGroup]], CreditNotes] | None = None
) -> None:
    """Raises AssertionError where a Credit breaks its contract.

    One credit per trajectory, one [T] per ledger; finite; exactly 0 outside policy tokens and for
    what is unscored; the same for the same groups; inputs untouched.
    """
    groups = (
        scored_group([1.0, -0.5, None, 0.25], patterns=("ppaaoobb", "pa", "ppoa", "paa|ppoa")),
        scored_group([-0.5, 1.0], group_id="1/q"),
        scored_group([None], group_id="2/q"),
    )
    before = [[s.total for s in group.scores] for group in groups]
    given = notes(groups) if notes else CreditNotes()
    credits = credit(groups, given)
    assert len(credits) == len(groups), "one tuple of credits per group"
    for group, own in zip(groups, credits, strict=True):
        assert len(own) == len(group.scores), "one credit per trajectory"
        for trajectory, score, one in zip(group.group.trajectories, group.scores, own, strict=True):
            _check_one(trajectory, score, one)
    assert any(row.any() for own in credits for one in own for row in one.advantages), "no signal"
    again = credit(groups, given)
    for a, b in zip(_rows(credits), _rows(again), strict=True):
        np.testing.assert_array_equal(a, b, err_msg="a credit is a function of its groups")
    assert before == [[s.total for s in group.scores] for group in groups], "inputs are untouched"


def _check_one(trajectory: Trajectory, score: Score, credit: TrajectoryCredit) -> None:
    assert len(credit.advantages) == len(trajectory.ledgers), "one row per ledger"
    for ledger, row in zip(trajectory.ledgers, credit.advantages, strict=True):
        assert row.shape == (len(ledger),), "an advantage per token"
        assert np.isfinite(row).all(), "advantages are finite"
        assert not row[~ledger.loss_mask].any(), "0 outside policy tokens"
    if score.total is None:
        assert credit.left_out == "unscored", "an unscored trajectory is left out"
        assert not any(row.any() for row in credit.advantages), "unscored: advantage 0"


def _rows(credits: Sequence[Sequence[TrajectoryCredit]]) -> list[Floats]:
    return [row for own in credits for one in own for row in one.advantages]


def check_group_relative(credit: Credit) -> None:
    """Of credits that compare siblings: no signal from a group of one or of equal totals."""
    groups = (
        scored_group([1.0], group_id="0/q"),
        scored_group([0.1 + 0.2, 0.3, 0.3], group_id="1/q"),
        scored_group([1.0, -0.5], group_id="2/q"),
    )
    one, equal, told = credit(groups, CreditNotes())
    assert one[0].left_out == "group_of_one", "a group of one is left out and says so"
    assert {c.left_out for c in equal} == {"equal_totals"}, "equal totals are left out and say so"
    assert not any(row.any() for row in _rows((one, equal))), "no signal: exactly 0"
    assert told[0].left_out is None
    assert told[0].advantages[0].max() > 0 > told[1].advantages[0].min(), "better is positive"


def check_trainer(make: Callable[[], Trainer], folder: Path) -> None:
    """Raises AssertionError where a Trainer breaks its contract. `make` begins anew each time.

    Versions count updates; the same updates give the same bits; a restored trainer goes on exactly
    like one that was never interrupted; annotations are [T] and 0 where nothing is trained.
    """
    first = Batch(micro=((sample("ppaaoob"), sample("ppaa", advantage=-1.0, seed=1)),))
    second = Batch(micro=((sample("pae", seed=2),), (sample("poaaa", advantage=-0.5, seed=3),)))
    whole = make()
    start = whole.policy_version
    _check_annotations(whole, first)
    before = _bits(whole)
    report = _update(whole, first)
    assert report.policy_version == whole.policy_version == start + 1, "one version per update"
    assert report.optimizer_step >= 1, "a batch is an optimiser step"
    assert all(np.isfinite(value) for value in report.metrics.values()), "metrics are finite"
    assert _bits(whole) != before, "an update changes the weights"
    whole.save(folder)
    _update(whole, second)
    resumed = make()
    resumed.load(folder)
    assert resumed.policy_version == start + 1, "the version is restored"
    _update(resumed, second)
    assert _bits(resumed) == _bits(whole), "a restored trainer goes on bit for bit"
    again = make()
    for batch in (first, second):
        _update(again, batch)
    assert _bits(again) == _bits(whole), "the same updates give the same bits"


def _update(trainer: Trainer, batch: Batch) -> UpdateReport:
    needs = trainer.needs
    notes = trainer.annotate(batch.samples, needs) if needs else None
    return trainer.update((batch,), notes)


def _check_annotations(trainer: Trainer, batch: Batch) -> None:
    notes = trainer.annotate(batch.samples, frozenset({"old_logprobs"}))
    assert notes.old_logprobs is not None, "what is needed is computed"
    for one, row in zip(batch.samples, notes.old_logprobs, strict=True):
        assert row.shape == (len(one),), "an annotation per token"
        assert not row[~one.loss_mask].any(), "0 where nothing is trained"


def _bits(trainer: Trainer) -> dict[str, bytes]:
    return {name: np.asarray(w).tobytes() for name, w in trainer.weights().items()}
