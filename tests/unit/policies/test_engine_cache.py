"""The cache: rows move and grow, what they hold stays with its session."""

import random

import torch

from outfox.policies.engines.continuous.cache import Cache

KEY = torch.zeros(2, 1, 4)  # [heads, tokens, width]


def write(cache: Cache, name: str, value: float) -> None:
    for layer in range(2):
        for tensor in cache.layer(layer, KEY, KEY):
            tensor[cache.row(name), :, :3] = value + layer


def read(cache: Cache, name: str) -> list[float]:
    """The value of each layer, which must be the same at all places."""
    found = []
    for layer in range(2):
        for tensor in cache.layer(layer, KEY, KEY):
            values = tensor[cache.row(name), :, :3].unique()
            assert len(values) == 1
            found.append(values.item() - layer)
    assert len(set(found)) == 1
    return found[:1]


def test_sessions_keep_their_contents_while_rows_move_and_grow():
    cache, rng, held = Cache(), random.Random(0), {}
    for step in range(200):
        if held and rng.random() < 0.3:
            name = rng.choice(sorted(held))
            cache.release(name)
            del held[name]
        new = f"s{step}"
        cache.reserve([new], 3 + step * 2)
        held[new] = float(step)
        write(cache, new, held[new])
        chosen = rng.sample(sorted(held), rng.randint(1, len(held)))
        placed = cache.arrange(chosen)
        assert sorted(placed) == sorted(chosen)
        assert [cache.row(name) for name in placed] == list(range(len(chosen)))
        assert all(read(cache, name) == [value] for name, value in held.items())


def test_capacity_is_the_next_power_of_two_and_rows_are_reused():
    cache = Cache()
    cache.reserve(["a"], 5)
    assert cache.capacity == 128
    cache.reserve(["b"], 129)
    assert cache.capacity == 256
    row = cache.row("a")
    cache.release("a")
    cache.release("never opened")
    cache.reserve(["c"], 5)
    assert cache.row("c") == row
    assert cache.layer(0, KEY, KEY)[0].shape == (16, 2, 256, 4)


def test_a_copy_is_independent():
    cache = Cache()
    cache.reserve(["a"], 3)
    write(cache, "a", 1.0)
    with torch.inference_mode():
        cache.copy("a", "b", 3)
    write(cache, "a", 2.0)
    assert (read(cache, "a"), read(cache, "b")) == ([2.0], [1.0])
