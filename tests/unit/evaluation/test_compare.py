"""Comparing variants: numbers small enough to count by hand, and intervals that mean something."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from outfox.core.errors import DataError
from outfox.evaluation.compare import Comparing, tallied
from outfox.evaluation.episodes import Episode


def played(question: str, *, right=True, calls=1, known=False, fact="", hops=1, abstained=False):
    return Episode(
        question=question,
        fact=fact or question,
        kind="known" if known else "unknown",
        known=known,
        needed=not known,
        answerable=True,
        right=right,
        abstained=abstained,
        calls=calls,
        relevant=calls > 0,
        tokens=10,
        reward=1.0,
        resolved=0.0,
        hops=hops,
    )


ONE = [
    played("a", calls=2, hops=2),
    played("a", right=False, calls=0, hops=2),
    played("b", calls=1),
    played("k", known=True, calls=1),
    played("k", known=True, calls=0),
]
OTHER = [
    played("a", calls=2, hops=2),
    played("a", calls=2, hops=2),
    played("b", right=False, calls=1),
    played("k", known=True, calls=1),
    played("k", known=True, calls=1),
]


def value(found, name):
    return found[name].value


def test_measures_are_sums_over_sums():
    found = Comparing({"one": {0: ONE}}).estimates("one")
    assert value(found, "accuracy") == pytest.approx(4 / 5)
    assert value(found, "calls") == pytest.approx(4 / 5)
    assert value(found, "calls_per_hop") == pytest.approx(4 / 7)
    assert value(found, "hops") == pytest.approx(7 / 5)
    assert value(found, "over_search") == pytest.approx(1 / 2)
    assert value(found, "necessity_recall") == pytest.approx(2 / 3)
    assert value(found, "j") == pytest.approx(1 - 1 / 2 - 1 / 3)
    assert (found["accuracy"].n, found["over_search"].n, found["j"].n) == (3, 1, 3)
    assert found["conflict"].value is None


def test_differences_and_ratios_are_paired():
    comparing = Comparing({"one": {0: ONE}, "other": {0: OTHER}})
    less = comparing.differences("other", "one")
    assert value(less, "accuracy") == pytest.approx(0.0)
    assert value(less, "j") == pytest.approx((1 - 1 - 0) - (1 - 1 / 2 - 1 / 3))
    assert value(comparing.ratios("other", "one"), "calls") == pytest.approx(7 / 4)
    same = comparing.differences("one", "one")["accuracy"]
    assert (same.value, same.low, same.high) == (0.0, 0.0, 0.0)


def test_seeds_add_up_and_are_told_one_by_one():
    comparing = Comparing({"one": {0: ONE, 4: OTHER}})
    assert value(comparing.estimates("one"), "calls") == pytest.approx(11 / 10)
    told = comparing.by_seed("one")
    assert told[0]["calls"] == pytest.approx(4 / 5)
    assert told[4]["calls"] == pytest.approx(7 / 5)
    assert told[0]["conflict"] is None


def test_only_what_all_variants_have_is_compared():
    more = [*OTHER, played("c", right=False)]
    tally = tallied({"one": {0: ONE, 1: ONE}, "other": {1: more, 2: more}})
    assert (tally.seeds, tally.questions, tally.facts) == ((1,), 3, ("a", "b", "k"))
    assert (
        value(Comparing({"one": {0: ONE}, "other": {0: more}}).estimates("other"), "calls") == 7 / 5
    )


@pytest.mark.parametrize("other", [{1: OTHER}, {0: [played("z")]}], ids=["seeds", "questions"])
def test_nothing_in_common_is_told(other):
    with pytest.raises(DataError, match="one, other have none in common"):
        Comparing({"one": {0: ONE}, "other": other})


def test_the_same_bootstrap_gives_the_same_interval_and_another_does_not():
    draw = Random(1)
    episodes = [played(f"q{i}", hops=draw.randrange(1, 9)) for i in range(60)]
    first, again, other = (
        Comparing({"one": {0: episodes}}, seed=seed).estimates("one")["calls_per_hop"]
        for seed in (0, 0, 1)
    )
    assert first == again
    assert (first.low, first.high) != (other.low, other.high)


def width(episodes_by_seed):
    found = Comparing({"one": episodes_by_seed}).estimates("one")["accuracy"]
    return found.high - found.low


def test_an_interval_is_that_of_independent_facts():
    """One seed, one episode per fact: the standard error of a share."""
    episodes = [played(f"q{i}", right=i % 4 > 0) for i in range(200)]
    expected = 2 * 1.96 * np.sqrt(0.75 * 0.25 / 200)
    assert width({0: episodes}) == pytest.approx(expected, rel=0.1)


def test_wordings_of_one_fact_are_no_more_evidence():
    draw = Random(2)
    rights = [draw.random() < 0.7 for _ in range(80)]
    once = [played(f"q{i}", right=right) for i, right in enumerate(rights)]
    often = [
        played(f"q{i}-{wording}", right=right, fact=f"f{i}")
        for i, right in enumerate(rights)
        for wording in range(4)
    ]
    apart = [
        played(f"q{i}-{wording}", right=right)
        for i, right in enumerate(rights)
        for wording in range(4)
    ]
    assert width({0: often}) == pytest.approx(width({0: once}), rel=0.12)
    assert width({0: apart}) < 0.6 * width({0: once})


def test_seeds_that_disagree_widen_the_interval_and_copies_do_not_narrow_it():
    def seed(share):
        return [played(f"q{i}", right=i % 10 < share) for i in range(200)]

    alone = width({0: seed(7)})
    assert width({s: seed(7) for s in range(3)}) == pytest.approx(alone, rel=0.1)
    assert width({0: seed(5), 1: seed(7), 2: seed(9)}) > 2 * alone


def test_pairing_takes_out_what_questions_have_in_common():
    draw = Random(3)
    hard = [draw.random() < 0.5 for _ in range(150)]
    one = {0: [played(f"q{i}", right=right) for i, right in enumerate(hard)]}
    other = {0: [played(f"q{i}", right=right or i % 10 == 0) for i, right in enumerate(hard)]}
    comparing = Comparing({"one": one, "other": other})
    less = comparing.differences("other", "one")["accuracy"]
    alone = comparing.estimates("one")["accuracy"]
    assert 0 < less.low < less.value < less.high
    assert less.high - less.low < 0.6 * (alone.high - alone.low)


def test_a_share_that_never_varies_has_wilsons_interval():
    found = Comparing({"one": {0: [played(f"q{i}") for i in range(50)]}}).estimates("one")
    assert found["accuracy"].high == 1.0
    assert 0.9 < found["accuracy"].low < 0.95
