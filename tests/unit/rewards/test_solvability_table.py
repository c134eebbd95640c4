from __future__ import annotations

import json

import pytest

from outfox.core.errors import DataError
from outfox.core.protocols import Stateful
from outfox.rewards.solvability import Provenance, Solvability, WorldSolvability
from outfox.testing.rewards import task

FIRST = Provenance(policy_hash="abc", k=8, step=0)


def test_labels_by_share_of_eight() -> None:
    table = Solvability()
    table.record({str(n): n / 8 for n in range(9)} | {"failed": None}, FIRST)
    assert [table.label(str(n)) for n in range(9)] == [
        *["unsolvable"] * 2, *["undetermined"] * 4, *["solvable"] * 3
    ]  # fmt: skip
    assert table.label("failed") == "undetermined"
    assert table.label("never probed") == "undetermined"
    assert table.of(task("8")) == "solvable"
    assert len(table) == 10


def test_later_probes_replace_earlier_ones_and_say_where_they_come_from() -> None:
    table = Solvability()
    table.record({"a": 0.0, "b": 1.0}, FIRST)
    table.record({"a": 1.0}, Provenance(policy_hash="def", k=8, step=20))
    probe = table.probe("a")
    assert probe is not None
    assert (table.p0("a"), probe.provenance.policy_hash, probe.provenance.step) == (1.0, "def", 20)
    assert table.p0("b") == 1.0


def test_restore_gives_the_same_next_call() -> None:
    table = Solvability()
    table.record({"a": 0.5, "b": None}, FIRST)
    other = Solvability()
    other.restore(json.loads(json.dumps(table.state())))
    assert isinstance(other, Stateful)
    assert other.state() == table.state()
    assert (other.p0("a"), other.p0("b"), other.probe("a")) == (0.5, None, table.probe("a"))


def test_shares_outside_zero_to_one_are_refused() -> None:
    with pytest.raises(DataError, match=r"task a has 1\.5"):
        Solvability().record({"a": 1.5}, FIRST)


def test_the_worlds_own_label() -> None:
    world = WorldSolvability()
    assert world.of(task(solvable="solvable")) == "solvable"
    assert world.of(task(solvable="unsolvable")) == "unsolvable"
    assert world.of(task()) == "undetermined"
    with pytest.raises(DataError, match="'maybe'"):
        world.of(task(solvable="maybe"))
