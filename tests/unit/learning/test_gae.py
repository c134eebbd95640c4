"""GAE against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from outfox.core.errors import ContractError
from outfox.core.protocols import CreditNotes
from outfox.learning.credit.gae import GAE
from outfox.testing.learning import scored_group


def test_two_policy_tokens_with_an_observation_between():
    group = scored_group([1.0], patterns=("paob",))
    notes = CreditNotes(values=[[np.array([9.0, 0.2, 9.0, 0.5], np.float32)]])
    credit = GAE(gamma=0.9, lam=0.5, whiten=False)((group,), notes)[0][0]
    last = 1.0 - 0.5
    first = 0.9 * 0.5 - 0.2 + 0.9 * 0.5 * last
    np.testing.assert_allclose(credit.advantages[0], [0, first, 0, last], rtol=1e-6)
    np.testing.assert_allclose(credit.returns[0], [0, first + 0.2, 0, 1.0], rtol=1e-6)


def test_the_reward_belongs_to_the_last_ledger():
    group = scored_group([1.0], patterns=("pa|pb",))
    zeros = [np.zeros(2, np.float32), np.zeros(2, np.float32)]
    credit = GAE(gamma=0.5, lam=1.0, whiten=False)((group,), CreditNotes(values=[zeros]))[0][0]
    np.testing.assert_allclose(credit.advantages[0], [0, 0.5])
    np.testing.assert_allclose(credit.advantages[1], [0, 1.0])


def test_whitening_is_over_policy_tokens():
    groups = (scored_group([1.0, -1.0], patterns=("ppaaoob",)),)
    notes = CreditNotes(values=[[np.zeros(7, np.float32)]] * 2)
    rows = [one.advantages[0] for one in GAE()(groups, notes)[0]]
    tokens = np.concatenate([row[[2, 3, 6]] for row in rows])
    assert tokens.mean() == pytest.approx(0, abs=1e-6)
    assert tokens.std(ddof=1) == pytest.approx(1)


def test_missing_values_are_refused():
    with pytest.raises(ContractError, match="needs value estimates for every trajectory: 2"):
        GAE()((scored_group([1.0, 0.0]),), CreditNotes())
