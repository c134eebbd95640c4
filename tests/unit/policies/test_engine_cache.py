"""The cache: lanes move, shelves grow, and what a lane holds stays with it."""

import random

import pytest
import torch

from outfox.policies.engines.continuous import cache as module
from outfox.policies.engines.continuous.cache import Cache, Shelf, width_for
from outfox.policies.engines.continuous.lanes import Lane

KEY = torch.zeros(1, 2, 4)  # [tokens, heads, width]


def write(cache: Cache, lane: Lane, value: float, start: int = 0) -> None:
    for layer in range(2):
        for tensor in cache.shelf(lane.width).layer(layer, KEY, KEY):
            tensor[lane.row, :, start : lane.length] = value + layer


def read(cache: Cache, lane: Lane, start: int, end: int) -> float:
    """The value of each layer, which must be the same at all places."""
    found = set[float]()
    for layer in range(2):
        for tensor in cache.shelf(lane.width).layer(layer, KEY, KEY):
            values = tensor[lane.row, :, start:end].unique()
            assert len(values) == 1
            found.add(values.item() - layer)
    assert len(found) == 1
    return found.pop()


def made(cache: Cache, tokens: int, value: float) -> Lane:
    lane = cache.new(tokens)
    cache.settle()
    lane.length = tokens
    write(cache, lane, value)
    return lane


@pytest.mark.parametrize(
    ("tokens", "width"),
    [(1, 32), (32, 32), (33, 64), (255, 256), (257, 320), (512, 512), (513, 640), (2049, 2560)],
)
def test_a_shelf_is_at_most_a_quarter_too_wide(tokens: int, width: int):
    assert width_for(tokens) == width


def test_lanes_keep_their_contents_while_they_grow_move_and_leave():
    cache, rng, held = Cache(), random.Random(0), dict[Lane, float]()
    for step in range(300):
        if held and rng.random() < 0.3:
            gone = rng.choice(list(held))
            cache.release(gone)
            del held[gone]
        for lane in rng.sample(list(held), len(held) // 3):
            grown = lane.length + rng.randint(1, 30)
            cache.move(lane, grown)
            lane.length, held[lane] = grown, held[lane]
        cache.settle()
        for lane, value in held.items():
            write(cache, lane, value, start=1)
        held[made(cache, rng.randint(1, 90), float(step))] = float(step)
        for width in {lane.width for lane in held}:
            mine = [lane for lane in held if lane.width == width]
            chosen = rng.sample(mine, rng.randint(1, len(mine)))
            cache.shelf(width).gather(chosen)
            rows = [lane.row for lane in chosen]
            assert len(set(rows)) == len(rows)
            assert max(rows) < len(rows) + max(8, len(rows) // 2)
        places = [(lane.width, lane.row) for lane in held]
        assert len(set(places)) == len(places)
        assert all(read(cache, lane, 0, lane.length) == value for lane, value in held.items())


def test_rows_are_reused_once_nothing_reads_them():
    cache = Cache()
    first = made(cache, 5, 1.0)
    cache.release(first)
    assert cache.new(5).row == 1
    cache.settle()
    assert cache.new(5).row == 0
    assert cache.shelf(32).layer(0, KEY, KEY)[0].shape == (16, 2, 32, 4)


def test_a_copy_is_independent():
    cache = Cache()
    lane = made(cache, 3, 1.0)
    copy = cache.copy(lane, 70)
    cache.settle()
    write(cache, lane, 2.0)
    assert (lane.width, copy.width) == (32, 96)
    assert (read(cache, lane, 0, 3), read(cache, copy, 0, 3)) == (2.0, 1.0)


def test_a_copy_of_a_lane_that_moves_at_the_same_time():
    cache = Cache()
    other = made(cache, 64, 5.0)
    lane = made(cache, 30, 1.0)
    cache.copy(other, 64)  # a transfer inside shelf 64 that comes before the move into it
    cache.move(lane, 40)
    copy = cache.copy(lane, 40)
    cache.settle()
    assert [read(cache, each, 0, 30) for each in (lane, copy)] == [1.0, 1.0]


def test_shelves_without_lanes_are_dropped_where_they_hold_much(monkeypatch: pytest.MonkeyPatch):
    cache = Cache()
    lane, kept = made(cache, 40, 1.0), made(cache, 5, 2.0)
    cache.release(lane)
    cache.settle()
    shelf: Shelf = cache.shelf(64)
    assert shelf.bytes > 0
    monkeypatch.setattr(module, "_KEPT", 0)
    cache.settle()
    assert cache.shelf(64) is not shelf
    assert read(cache, kept, 0, 5) == 2.0
