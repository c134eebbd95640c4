"""Turn-level credit: every turn gets the outcome's advantage and its own."""

from __future__ import annotations

import numpy as np
import pytest

from outfox.core.errors import ContractError
from outfox.core.protocols import CreditNotes
from outfox.core.results import Value
from outfox.learning.credit.group_mean import GroupMean
from outfox.learning.credit.turn_level import TurnLevel
from outfox.testing.learning import scored_group

NONE = CreditNotes()


def results(*per_turn):
    return [{"yield": Value(value=sum(v or ()), per_turn=v)} for v in per_turn]


def test_each_turn_gets_its_own_amount_on_top_of_the_outcome():
    group = scored_group([1.0, 0.0], results=results((1.0, 0.0), (0.0, 0.0)))
    outcome = GroupMean()((group,), NONE)[0]
    credit = TurnLevel(signals={"yield": 1.0}, weight=0.5, discount=0.0, eps=0)((group,), NONE)[0]
    extra = credit[0].advantages[0] - outcome[0].advantages[0]
    unit = 0.5 * 2**-0.5
    np.testing.assert_allclose(extra, [0, 0, unit, unit, unit, 0, 0, 0, 0], atol=1e-3)
    np.testing.assert_allclose(
        credit[1].advantages[0][2:5], outcome[1].advantages[0][2:5] - unit, atol=1e-3
    )


def test_later_turns_are_discounted_into_earlier_ones():
    group = scored_group([0.0, 0.0], results=results((0.0, 1.0), (0.0, 0.0)))
    credit = TurnLevel(signals={"yield": 1.0}, discount=0.5, eps=0)((group,), NONE)[0][0]
    unit = 2**-0.5
    np.testing.assert_allclose(
        credit.advantages[0], [0, 0, unit, unit, unit, 0, 0, unit, unit], rtol=1e-6
    )
    assert credit.left_out is None


def test_a_turn_that_one_sibling_reached_adds_nothing():
    group = scored_group([0.0, 0.0], patterns=("paob", "pa"), results=results((0.0, 1.0), (0.0,)))
    credit = TurnLevel(signals={"yield": 1.0}, discount=0.0)((group,), NONE)[0]
    assert [one.left_out for one in credit] == ["equal_totals"] * 2


def test_signals_without_values_per_turn_are_refused():
    group = scored_group([1.0, 0.0], results=results(None, (0.0, 0.0)))
    with pytest.raises(ContractError, match="2 turns, none values"):
        TurnLevel(signals={"yield": 1.0})((group,), NONE)
