"""Limits refuse what allows nothing."""

import pytest

from outfox.core.errors import ConfigError
from outfox.rollout.limits import Limits


@pytest.mark.parametrize(
    "name",
    [
        "max_turns",
        "max_tokens",
        "max_new_tokens",
        "max_observation_tokens",
        "step_seconds",
        "act_seconds",
    ],
)
def test_a_limit_of_zero_is_refused(name: str):
    with pytest.raises(ConfigError, match=rf"limits\.{name} is above 0; got 0"):
        Limits(**{name: 0})


def test_parse_errors_may_be_none_but_not_fewer():
    assert Limits(max_parse_errors=0).max_parse_errors == 0
    with pytest.raises(ConfigError, match="at least 0; got -1"):
        Limits(max_parse_errors=-1)
