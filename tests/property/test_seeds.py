"""Every draw is a function of what it is for: not of who drew before, with whom, or where."""

import os
import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from outfox.core.ranks import share
from outfox.core.seeding import derive, rng, uniforms
from outfox.testing.worlds import fake_task
from outfox.worlds.tasks.rows import RowTasks, epoch_order

PARTS = st.lists(st.integers() | st.text(max_size=8), min_size=1, max_size=4).map(tuple)
KEYS = st.integers(0, 2**64 - 1)
COUNTERS = st.integers(0, 2**62)


@given(st.sets(PARTS, min_size=2, max_size=30))
def test_other_names_give_another_key(names):
    """Also 1 and "1", and ("a", "b") and ("ab",)."""
    assert len({derive(*parts) for parts in names}) == len(names)


def test_a_run_of_many_steps_has_no_two_streams_alike():
    keys = {
        derive("noise", seed, step, f"{step}/{group}/task", sibling, 0)
        for seed in (0, 1)
        for step in range(50)
        for group in range(24)
        for sibling in range(8)
    }
    assert len(keys) == 2 * 50 * 24 * 8


@given(PARTS)
def test_names_always_give_the_same_key_and_stream(parts):
    assert derive(*parts) == derive(*parts)
    assert 0 <= derive(*parts) < 2**64
    assert rng(*parts).random() == rng(*parts).random()


@given(st.lists(st.tuples(KEYS, COUNTERS), min_size=1, max_size=20), st.randoms())
def test_a_draw_does_not_depend_on_its_companions_or_their_order(pairs, shuffler):
    keys, counters = zip(*pairs, strict=True)
    together = dict(zip(pairs, uniforms(keys, counters), strict=True))
    assert all(0 <= value < 1 for value in together.values())
    alone = {pair: uniforms([pair[0]], [pair[1]])[0] for pair in pairs}
    assert alone == together
    shuffled = list(pairs)
    shuffler.shuffle(shuffled)
    again = uniforms([key for key, _ in shuffled], [counter for _, counter in shuffled])
    assert dict(zip(shuffled, again, strict=True)) == together


@given(KEYS)
def test_draws_of_one_key_are_spread_evenly_and_differ(key):
    draws = uniforms([key] * 2000, range(2000))
    assert len(set(draws.tolist())) == 2000
    counts, _ = np.histogram(draws, bins=10, range=(0, 1))
    assert counts.min() > 110
    assert counts.max() < 300


@given(KEYS, KEYS)
def test_neighbouring_streams_are_not_shifted_copies(key, other):
    first, second = uniforms([key] * 50, range(50)), uniforms([other] * 50, range(50))
    assert key == other or not set(first.tolist()) & set(second.tolist())


@given(st.integers(1, 7), st.integers(0, 20))
def test_the_number_of_processes_changes_who_plays_and_nothing_else(count, size):
    class Rank:
        def __init__(self, index):
            self.index, self.count = index, count

    tasks = [fake_task(number) for number in range(size)]
    shares = [share(list(enumerate(tasks)), Rank(index)) for index in range(count)]
    together = sorted((pair for mine in shares for pair in mine), key=lambda pair: pair[0])
    assert together == list(enumerate(tasks))


@given(st.integers(1, 30), st.integers(-(2**63), 2**63), st.integers(0, 50))
def test_every_epoch_is_an_order_of_its_own_and_holds_every_task_once(size, seed, epoch):
    order = epoch_order(size, seed, epoch)
    assert sorted(order) == list(range(size))
    assert order == epoch_order.__wrapped__(size, seed, epoch)
    tasks = RowTasks([fake_task(number) for number in range(size)], seed=seed)
    once = [tasks.item(epoch * size + place).task_id for place in range(size)]
    assert len(set(once)) == size


@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 6))
def test_what_a_step_takes_does_not_depend_on_the_steps_before(size, count, step):
    def fresh():
        return RowTasks([fake_task(number) for number in range(size)], seed=3)

    used = fresh()
    for earlier in range(step):
        used.take(earlier, count)
    assert used.take(step, count) == fresh().take(step, count)


def test_another_process_derives_the_same_keys():
    """`hash()` of a text differs from process to process; these keys may not."""
    code = "from outfox.core.seeding import derive, uniforms\n"
    code += "print(derive(0, 'é', -5), uniforms([7], [9])[0])"
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] == f"{derive(0, 'é', -5)} {uniforms([7], [9])[0]}\n"
