"""Turn-level credit: the group's outcome advantage, plus each turn's own process advantage.

    advantage of turn k = outcome advantage + weight * (G[k] - mean) / (std + eps)
    G[k] = sum over later turns j >= k of discount^(j - k) * (signals' values at turn j)

Mean and standard deviation are over the siblings' turns with the same number k, as in MT-GRPO (Zeng
et al. 2025). A turn that fewer than two siblings reached, or where they are equal, adds exactly 0.
Signals are those with per-turn values, named in `signals`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from outfox.core.errors import ContractError
from outfox.core.ledger import Floats, Ledger
from outfox.core.protocols import CreditNotes
from outfox.core.results import Score, ScoredGroup, TrajectoryCredit, Value
from outfox.core.types import Trajectory
from outfox.learning.credit.baseline import (
    Reals,
    all_equal,
    centre,
    no_signal,
    scored,
    signal_of,
    spread,
    totals,
)
from outfox.learning.credit.group_mean import GroupMean


def _no_signals() -> dict[str, float]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLevel:
    """Credit that differs from turn to turn."""

    signals: Mapping[str, float] = field(default_factory=_no_signals)
    """Weight by signal name; each must give per-turn values."""
    weight: float = 1.0
    """Of the process advantage against the outcome advantage."""
    discount: float = 1.0
    """Of the values of later turns."""
    eps: float = 1e-4
    """Added to the divisor."""
    floor: float = 0.1
    """Least standard deviation that is divided by."""
    wrong_floor: float = 1.0
    """The same in a group where every scored outcome is wrong or unanswered."""

    def __call__(
        self, groups: Sequence[ScoredGroup], notes: CreditNotes
    ) -> tuple[tuple[TrajectoryCredit, ...], ...]:
        outcome = GroupMean(eps=self.eps, floor=self.floor, wrong_floor=self.wrong_floor)
        return tuple(self._group(group, outcome((group,), notes)[0]) for group in groups)

    def _group(
        self, group: ScoredGroup, outcome: Sequence[TrajectoryCredit]
    ) -> tuple[TrajectoryCredit, ...]:
        process = self._process(group)
        reasons = signal_of(totals(group))
        credits: list[TrajectoryCredit] = []
        for trajectory, base, turns, reason in zip(
            group.group.trajectories, outcome, process, reasons, strict=True
        ):
            if reason == "unscored":
                credits.append(no_signal(trajectory, reason))
            elif not turns.any():
                credits.append(base)
            else:
                credits.append(_add(trajectory, base, turns))
        return tuple(credits)

    def _process(self, group: ScoredGroup) -> list[Reals]:
        """Per sibling: [turns] weighted process advantage."""
        returns = [
            self._returns(trajectory, score)
            for trajectory, score in zip(group.group.trajectories, group.scores, strict=True)
        ]
        process = [np.zeros_like(own) for own in returns]
        for k in range(max(map(len, returns), default=0)):
            column = np.array([own[k] if k < len(own) else np.nan for own in returns])
            known = column[scored(column)]
            if len(known) < 2 or all_equal(known):
                continue
            at_turn = centre(column, max(spread(column), self.floor) + self.eps)
            for own, value in zip(process, at_turn, strict=True):
                if k < len(own):
                    own[k] = self.weight * value
        return process

    def _returns(self, trajectory: Trajectory, score: Score) -> Reals:
        """[turns] discounted sums of what is still to come; NaN where unscored."""
        count = len(trajectory.turns)
        if score.total is None:
            return np.full(count, np.nan)
        rewards = np.zeros(count)
        for name, weight in self.signals.items():
            result = score.results.get(name)
            if isinstance(result, Value):
                rewards += weight * _per_turn(name, result, count)
        for k in reversed(range(count - 1)):
            rewards[k] += self.discount * rewards[k + 1]
        return rewards


def _per_turn(name: str, result: Value, count: int) -> Reals:
    if result.per_turn is None or len(result.per_turn) != count:
        given = "none" if result.per_turn is None else str(len(result.per_turn))
        raise ContractError(
            f"turn-level credit needs one value per turn from signal '{name}': "
            f"{count} turns, {given} values; return Value(per_turn=...) or leave the signal out"
        )
    return np.asarray(result.per_turn, np.float64)


def _add(trajectory: Trajectory, base: TrajectoryCredit, turns: Reals) -> TrajectoryCredit:
    """Each turn's own amount on top of its policy tokens. A reading splits a turn into pieces."""
    owners = [k for k, turn in enumerate(trajectory.turns) for _ in turn.completions]
    pieces = sum(s.owner == "policy" for led in trajectory.ledgers for s in led.segments)
    if pieces != len(owners):
        raise ContractError(
            "every completion is one policy segment of a ledger; "
            f"{trajectory.group_id}/{trajectory.sibling} has {len(owners)} completions "
            f"and {pieces} policy segments"
        )
    next_owner = iter(owners)
    rows = tuple(
        (advantages + _row(ledger, turns, next_owner)).astype(np.float32)
        for advantages, ledger in zip(base.advantages, trajectory.ledgers, strict=True)
    )
    return TrajectoryCredit(advantages=rows)


def _row(ledger: Ledger, turns: Reals, next_owner: Iterator[int]) -> Floats:
    pieces = [
        np.full(len(s.token_ids), turns[next(next_owner)] if s.owner == "policy" else 0.0)
        for s in ledger.segments
    ]
    return np.concatenate(pieces).astype(np.float32) if pieces else np.zeros(0, np.float32)


part = TurnLevel
