"""The rubric: signals and a tree make one total per trajectory.

    pass 1   outcome and support of every sibling            (verdict.py)
    pass 2   the other signals, which may look at siblings
    total    a gate that fired, else outcome - min(cap, sum of weight * deduction)

`bounds` runs the same arithmetic on intervals instead of numbers (intervals.py).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from outfox.core.errors import ConfigError, DataError, did_you_mean
from outfox.core.protocols import Signal, SignalContext
from outfox.core.results import (
    SIGNAL_FAILED,
    NotApplicable,
    Score,
    ScoredGroup,
    SignalError,
    SignalResult,
    Value,
)
from outfox.core.types import JSON, Group, Trajectory
from outfox.rewards.budgets import Budgets
from outfox.rewards.deeds import deeds
from outfox.rewards.intervals import ZERO, Interval, hull, point, summed, total
from outfox.rewards.isolated import IsolatedSignal
from outfox.rewards.lift import LiftedSignal, called, row_name
from outfox.rewards.signals import SIGNALS
from outfox.rewards.solvability import SolvabilityLabels
from outfox.rewards.tree import Deductions, Tree, load_tree, rubric_hash
from outfox.rewards.verdict import (
    CASES,
    OUTCOMES,
    RIGHT_CASES,
    Case,
    Verdict,
    case_value,
    judge,
    task_scale,
)

log = logging.getLogger(__name__)

GATE_MARGIN = 0.5
"""How far a gate's total lies below the lowest total reachable otherwise."""
ABOVE_ZERO = Interval(0.0, math.inf)


class RubricTree:
    """A rubric tree over signals; fits the protocols `Rubric` and `Stateful`.

    `tree`: a preset's name, a path, plain data, or a Tree. `solvability`: closed-book labels; None
    leaves every task undetermined, so necessity and support do not apply unless it must ground.
    `signals`: signals by the name the tree uses, beside the shipped ones. Raises ConfigError.
    """

    def __init__(
        self,
        tree: str | Path | Mapping[str, JSON] | Tree,
        *,
        solvability: SolvabilityLabels | None = None,
        signals: Mapping[str, Signal] | None = None,
    ) -> None:
        self.tree = tree if isinstance(tree, Tree) else load_tree(tree)
        self.budgets = Budgets(self.tree.budgets)
        self._solvability = solvability
        known: dict[str, Signal] = {**SIGNALS, **(signals or {})}
        self._signals = {name: _known(name, known) for name in self.tree.signals}
        self._settings = {name: self._checked_settings(name) for name in self._signals}
        self._alike = frozenset(
            name
            for name, signal in self._signals.items()
            if signal is SIGNALS.get(name) and signal.family != "cost"
        )
        """Signals that look at nothing but a trajectory's deeds: shipped, but no costs."""
        for name in self.tree.deducted:
            _check_deduction(name, self._signals[name])
        _check_outcome(self._signals[self.tree.outcome.signal])

    # -- what can be reached ----------------------------------------------------------------------
    @property
    def hash(self) -> str:
        """Of the tree; stored with every score."""
        return rubric_hash(self.tree)

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest reachable total, gates included."""
        reached = self._reached()
        low = self.gate_total if self.tree.gates else reached.low
        return (low, reached.high)

    @property
    def gate_total(self) -> float:
        """The total of a trajectory on which a gate fired: the lowest reachable one less .5."""
        return self._reached().low - GATE_MARGIN

    def bounds_of(self, case: Case) -> Interval:
        """Reachable totals of one row of the outcome table."""
        node, side = self._side(case)
        charges = {
            name: _from_zero(self._signals[name].range).times(self._weights(name, weight))
            for name, weight in node.deduct.items()
        }
        if side == "if_right":
            charges |= {f"budget {name}": ABOVE_ZERO for name in self.tree.budgets}
        return total(self._case_interval(case), charges, node.cap)

    def _reached(self) -> Interval:
        return hull(self.bounds_of(case) for case in CASES)

    def _case_interval(self, case: Case) -> Interval:
        if self.tree.outcome.graded:
            return Interval(*self._signals[self.tree.outcome.signal].range)
        value = case_value(case, self.tree.outcome)
        scales = self.tree.outcome.task_w
        if scales is None or value >= 0:
            return point(value)
        w = -self.tree.outcome.wrong
        return hull(point(value * scale) for scale in (1.0, scales[0] / w, scales[1] / w))

    def _weights(self, name: str, weight: float) -> Interval:
        return Interval(0.0, weight) if name in self.tree.schedule else point(weight)

    # -- scoring ----------------------------------------------------------------------------------
    def score(self, group: Group, *, step: int) -> tuple[Score, ...]:
        """One score per trajectory, in order. `step` places scheduled weights on their ramps."""
        done_by = [deeds(trajectory) for trajectory in group.trajectories]
        verdicts = self._verdicts(group, done_by, step)
        contexts = self._contexts(group, verdicts, step)
        known: dict[Hashable, Score] = {}
        scores: list[Score] = []
        for trajectory, done, verdict in zip(group.trajectories, done_by, verdicts, strict=True):
            twin = known.get(done)
            results = self._measure(trajectory, verdict, contexts, twin)
            if twin is None or results != twin.results:
                twin = self._score(trajectory, verdict, results, step)
            if not any(map(_failed, results.values())):
                known[done] = twin
            scores.append(twin)
        return tuple(scores)

    def begin(self, groups: Sequence[Group], *, step: int) -> None:
        """Ask ahead what runs in other processes; `score` then waits for it."""
        for name, signal in self._signals.items():
            if isinstance(signal, IsolatedSignal):
                signal.begin(groups, self._settings[name], step)

    def after_step(self, groups: Iterable[ScoredGroup]) -> None:
        """Once per training step: move the multipliers of `budgets` by the batch's means."""
        self.budgets.update([score.results for group in groups for score in group.scores])

    def state(self) -> JSON:
        return {"budgets": self.budgets.state()}

    def restore(self, state: JSON) -> None:
        self.budgets.restore(cast("dict[str, JSON]", state)["budgets"])

    def _verdicts(self, group: Group, done_by: Sequence[Hashable], step: int) -> list[Verdict]:
        """Per sibling; siblings that did the same are judged once, unless that failed."""
        alike = self.tree.outcome.signal in self._alike
        judged: dict[Hashable, Verdict] = {}
        verdicts: list[Verdict] = []
        for trajectory, done in zip(group.trajectories, done_by, strict=True):
            verdict = judged.get(done)
            if verdict is None or verdict.case is None or not alike:
                verdict = judged[done] = self._judge(trajectory, group, step)
            verdicts.append(verdict)
        return verdicts

    def _contexts(
        self, group: Group, verdicts: Sequence[Verdict], step: int
    ) -> dict[str, SignalContext]:
        """By signal; the same for all siblings, since they share the task."""
        right = tuple(verdict.right for verdict in verdicts)
        supported = tuple(verdict.support for verdict in verdicts)
        return {
            name: SignalContext(
                group=group,
                solvable=verdicts[0].solvable,
                must_ground=verdicts[0].must_ground,
                right=right,
                supported=supported,
                settings=settings,
                step=step,
            )
            for name, settings in self._settings.items()
        }

    def _judge(self, trajectory: Trajectory, group: Group, step: int) -> Verdict:
        task, node = trajectory.task, self.tree.outcome
        solvable = self._solvability.of(task) if self._solvability else "undetermined"
        must_ground = self.tree.must_ground or bool(task.metadata.get("must_ground"))
        if trajectory.stop_reason == "error":
            why = f"{row_name(trajectory)} ended in error: {trajectory.error}"
            return Verdict(
                solvable=solvable,
                must_ground=must_ground,
                result=SignalError(why=why),
                case=None,
                support=None,
            )
        context = SignalContext(
            group=group,
            solvable=solvable,
            must_ground=must_ground,
            settings=self._settings[node.signal],
            step=step,
        )
        result = _call(self._signals[node.signal], trajectory, context)
        case, support = judge(trajectory, result, node=node, must_ground=must_ground)
        return Verdict(
            solvable=solvable, must_ground=must_ground, result=result, case=case, support=support
        )

    def _measure(
        self,
        trajectory: Trajectory,
        verdict: Verdict,
        contexts: Mapping[str, SignalContext],
        twin: Score | None,
    ) -> dict[str, SignalResult]:
        """Every signal of the tree, as measured; of a failed episode only that it failed.

        `twin`: the score of a sibling that did the same.
        """
        outcome = self.tree.outcome.signal
        if trajectory.stop_reason == "error":
            return {outcome: verdict.result}
        results = dict(twin.results) if twin else {}
        for name, signal in self._signals.items():
            if name == outcome:
                results[name] = verdict.result
            elif not twin or name not in self._alike:
                results[name] = _call(signal, trajectory, contexts[name])
        return results

    def _score(
        self,
        trajectory: Trajectory,
        verdict: Verdict,
        results: Mapping[str, SignalResult],
        step: int,
    ) -> Score:
        gates = [name for name in self.tree.gates if _fired(results.get(name))]
        if gates:
            gate_total = self.gate_total
            return Score(
                total=gate_total,
                outcome="gated",
                results=results,
                parts={gates[0]: gate_total},
                gate=gates[0],
            )
        charges = None if verdict.case is None else self._charges(verdict.case, results, step)
        gate_failed = any(_failed(results.get(name)) for name in self.tree.gates)
        if verdict.case is None or charges is None or gate_failed:
            _tell(trajectory, results)
            return Score(total=None, outcome="failed", results=results, parts={})
        return self._total(trajectory, verdict.case, results, charges)

    def _total(
        self,
        trajectory: Trajectory,
        case: Case,
        results: Mapping[str, SignalResult],
        charges: Mapping[str, float],
    ) -> Score:
        node, _ = self._side(case)
        value = case_value(case, self.tree.outcome)
        measured = results[self.tree.outcome.signal]
        if self.tree.outcome.graded and isinstance(measured, Value):
            value = measured.value
        elif value < 0:
            try:
                value *= task_scale(trajectory.task, self.tree.outcome)
            except DataError as error:
                failed = {**results, self.tree.outcome.signal: SignalError(why=str(error))}
                return Score(total=None, outcome="failed", results=failed, parts={})
        points = {name: point(charge) for name, charge in charges.items()}
        asked = summed(points.values()).low
        share = min(1.0, node.cap / asked) if asked > 0 else 0.0
        parts = {name: 0.0 - charge * share for name, charge in charges.items()}
        return Score(
            total=total(point(value), points, node.cap).low,
            outcome=OUTCOMES[case],
            results=results,
            parts={self.tree.outcome.signal: value, **parts},
        )

    def _charges(
        self, case: Case, results: Mapping[str, SignalResult], step: int
    ) -> dict[str, float] | None:
        """What is taken off, before the cap; None where a deduction that counts here failed."""
        node, side = self._side(case)
        charges: dict[str, float] = {}
        for name, weight in node.deduct.items():
            result = results[name]
            if _failed(result):
                return None
            if isinstance(result, Value):
                ramp = self.tree.schedule.get(name)
                charges[name] = weight * (ramp.share(step) if ramp else 1.0) * result.value
        for name in self.tree.budgets if side == "if_right" else ():
            result = results[name]
            if _failed(result):
                return None
            if isinstance(result, Value):
                charges[f"budget {name}"] = self.budgets.charge(name, result.value)
        return charges

    def _side(self, case: Case) -> tuple[Deductions, str]:
        if case in RIGHT_CASES:
            return self.tree.if_right, "if_right"
        return self.tree.if_not_right, "if_not_right"

    def _checked_settings(self, name: str) -> Mapping[str, JSON]:
        settings = self.tree.settings.get(name, {})
        signal = self._signals[name]
        if isinstance(signal, IsolatedSignal):
            signal = signal.signal
        if isinstance(signal, LiftedSignal):
            return signal.validated(settings, where=f"settings.{name}")
        return settings


def _known(name: str, known: Mapping[str, Signal]) -> Signal:
    if name not in known:
        raise ConfigError(f"the rubric names the signal '{name}'.{did_you_mean(name, known)}")
    return known[name]


def _call(signal: Signal, trajectory: Trajectory, context: SignalContext) -> SignalResult:
    """Its result, checked; of one in another process it was checked there."""
    if isinstance(signal, IsolatedSignal):
        return signal(trajectory, context)
    return called(signal, trajectory, context)


def _tell(trajectory: Trajectory, results: Mapping[str, SignalResult]) -> None:
    """A warning per signal that failed; what failed outside of it was told when it did."""
    for name, result in results.items():
        if isinstance(result, SIGNAL_FAILED) and trajectory.stop_reason != "error":
            log.warning(
                f"the signal {name} failed, so episodes get no total and teach nothing: %s; "
                "mend the signal, or take it out of the rubric",
                result.why,
            )


def _fired(result: SignalResult | None) -> bool:
    return isinstance(result, Value) and result.value > 0


def _failed(result: SignalResult | None) -> bool:
    return not isinstance(result, (Value, NotApplicable))


def _from_zero(bounds: tuple[float, float]) -> Interval:
    """What a deduction may be: a signal that does not apply deducts nothing."""
    return hull((ZERO, Interval(*bounds)))


def _check_deduction(name: str, signal: Signal) -> None:
    low, high = signal.range
    if low < 0 or high > 1:
        raise ConfigError(
            f"a deduction's range lies in [0, 1]; {name} has [{low:g}, {high:g}]: rescale it, or "
            "put it under `budgets`"
        )


def _check_outcome(signal: Signal) -> None:
    if signal.scope == "group":
        raise ConfigError(
            f"the outcome signal looks at one trajectory; {signal.name} has the scope group"
        )
