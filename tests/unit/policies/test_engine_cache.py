"""The cache: rows move and grow, what they hold stays with its lane."""

import random

import torch

from outfox.policies.engines.continuous.cache import Cache
from outfox.policies.engines.continuous.lanes import Lane

KEY = torch.zeros(1, 2, 4)  # [tokens, heads, width]


def write(cache: Cache, lane: Lane, value: float) -> None:
    for layer in range(2):
        for tensor in cache.layer(layer, KEY, KEY):
            tensor[lane.row, :, : lane.length] = value + layer


def read(cache: Cache, lane: Lane) -> list[float]:
    """The value of each layer, which must be the same at all places."""
    found = []
    for layer in range(2):
        for tensor in cache.layer(layer, KEY, KEY):
            values = tensor[lane.row, :, : lane.length].unique()
            assert len(values) == 1
            found.append(values.item() - layer)
    assert len(set(found)) == 1
    return found[:1]


def made(cache: Cache, tokens: int, value: float) -> Lane:
    cache.room(tokens)
    lane = cache.new()
    lane.length = tokens
    write(cache, lane, value)
    return lane


def test_lanes_keep_their_contents_while_rows_move_and_grow():
    cache, rng, held = Cache(), random.Random(0), dict[float, Lane]()
    for step in range(200):
        if held and rng.random() < 0.3:
            cache.release(held.pop(rng.choice(sorted(held))))
        held[float(step)] = made(cache, 3 + step * 2, float(step))
        chosen = rng.sample(sorted(held), rng.randint(1, len(held)))
        cache.gather([held[value] for value in chosen])
        rows = [held[value].row for value in chosen]
        assert len(set(rows)) == len(rows)
        assert max(rows) < len(rows) + max(4, len(rows) // 4)
        assert all(read(cache, lane) == [value] for value, lane in held.items())


def test_rows_and_capacity_grow_with_need_and_rows_are_reused():
    cache = Cache()
    first = made(cache, 5, 1.0)
    assert (first.row, cache.capacity) == (0, 128)
    made(cache, 129, 2.0)
    assert cache.capacity == 192
    cache.release(first)
    assert made(cache, 5, 3.0).row == 0
    assert cache.layer(0, KEY, KEY)[0].shape == (16, 2, 192, 4)


def test_a_copy_is_independent():
    cache = Cache()
    lane = made(cache, 3, 1.0)
    with torch.inference_mode():
        copy = cache.copy(lane, 2)
    write(cache, lane, 2.0)
    assert (read(cache, lane), read(cache, copy), copy.length) == ([2.0], [1.0], 2)
