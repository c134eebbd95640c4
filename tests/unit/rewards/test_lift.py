from __future__ import annotations

from typing import Literal

import pytest

from outfox.core.errors import ConfigError
from outfox.core.protocols import SignalContext
from outfox.core.results import SignalCrash, SignalError, Value
from outfox.core.types import Trajectory
from outfox.rewards.lift import signal
from outfox.testing.rewards import context, group, task

ONE = group(task("t", "?", "x"), ["<answer>x</answer>"])
[EPISODE] = ONE.trajectories


@signal(range=(0, 2), family="cost", scope="group")
def answers_times(
    trajectory: Trajectory, context: SignalContext, *, times: int = 1, mode: Literal["a", "b"] = "a"
) -> int:
    return times * len(context.group.trajectories)


def test_a_lifted_function_carries_its_declaration() -> None:
    assert (answers_times.name, answers_times.range) == ("answers_times", (0.0, 2.0))
    assert (answers_times.family, answers_times.scope) == ("cost", "group")
    assert {name: each.default for name, each in answers_times.settings.items()} == {
        "times": 1,
        "mode": "a",
    }


def test_keyword_only_parameters_are_settings() -> None:
    assert answers_times(EPISODE, context(ONE)) == Value(value=1.0)
    assert answers_times(EPISODE, context(ONE, settings={"times": 2})) == Value(value=2.0)


def test_settings_are_validated_with_a_suggestion() -> None:
    assert answers_times.validated({"times": 2}, where="s") == {"times": 2}
    with pytest.raises(ConfigError, match=r"s\.time: unknown key\. Did you mean 'times'\?"):
        answers_times.validated({"time": 2}, where="s")
    with pytest.raises(ConfigError, match=r"s\.times: must be a valid integer"):
        answers_times.validated({"times": "two"}, where="s")
    with pytest.raises(ConfigError, match=r"s\.mode"):
        answers_times.validated({"mode": "c"}, where="s")


def test_a_name_of_its_own() -> None:
    assert signal(range=(0, 1), family="cost", name="short")(lambda trajectory: 0).name == "short"


def test_what_cannot_be_a_signal_is_refused_at_definition() -> None:
    async def later(trajectory: Trajectory) -> float:
        return 1.0

    with pytest.raises(ConfigError, match="remove `async`"):
        signal(range=(0, 1), family="cost")(later)
    with pytest.raises(ConfigError, match="3 positional parameters"):
        signal(range=(0, 1), family="cost")(lambda a, b, c: 0)
    with pytest.raises(ConfigError, match="low < high"):
        signal(range=(1, 0), family="cost")(lambda trajectory: 0)
    with pytest.raises(ConfigError, match="Did you mean 'cost'"):
        signal(range=(0, 1), family="costs")(lambda trajectory: 0)  # type: ignore[arg-type]


def test_values_per_turn_are_finite() -> None:
    @signal(range=(0, 1), family="cost")
    def odd(trajectory: Trajectory) -> Value:
        return Value(value=0.5, per_turn=(0.5, float("nan")))

    result = odd(EPISODE, context(ONE))
    assert isinstance(result, SignalError)
    assert "values per turn are finite" in result.why


def test_a_signal_without_memory_left_is_a_crash() -> None:
    @signal(range=(0, 1), family="cost")
    def greedy(trajectory: Trajectory) -> float:
        raise MemoryError

    assert isinstance(greedy(EPISODE, context(ONE)), SignalCrash)
