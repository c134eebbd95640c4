"""A session's tokens and logprobs, bit by bit, do not depend on who else is there or when."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from outfox.core.ledger import Completion
from outfox.core.protocols import Sampling
from outfox.policies.engines.transformers import TransformersEngine
from outfox.policies.tiny import build_model, build_tokenizer

TOKENIZER = build_tokenizer([f"name{number}" for number in range(900)])
MODELS = {
    "llama": build_model(TOKENIZER, context=512),
    "lfm2": build_model(TOKENIZER, context=512, convolutions=2, layers=1, kv_heads=4),
}
STOP = ("</think>", "name7")
SESSIONS = 5


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


async def session(
    engine: TransformersEngine, number: int, copy: int, delays: Sequence[int]
) -> list[Completion]:
    """Three turns whose tokens depend on `number` alone; some are one token, some 90.

    Three numbers in a row have the same new tokens, as siblings do: they share lanes.
    """
    rng = np.random.default_rng(number // 3)
    name = f"{number}/{copy}"
    engine.open(name, noise_key=number)
    made = []
    for turn in range(3):
        for _ in range(delays[turn]):
            await asyncio.sleep(0)
        size = int(rng.choice([1, 2, 5, 24, 90]))
        new = rng.integers(300, len(TOKENIZER), size)
        sampling = Sampling(max_tokens=int(rng.integers(1, 30)), top_p=[1.0, 0.9][number % 2])
        made.append(await engine.generate(name, new, sampling=sampling, stop=STOP))
    engine.end(name)
    return made


@cache
def alone(model: str, number: int, count: int) -> list[Completion]:
    engine = TransformersEngine(MODELS[model], TOKENIZER)
    with threads(count):
        return asyncio.run(session(engine, number, 0, (0, 0, 0)))


def same(made: Sequence[Completion], expected: Sequence[Completion]) -> bool:
    return all(
        np.array_equal(one.token_ids, other.token_ids)
        and np.array_equal(one.logprobs, other.logprobs)
        and one.finish_reason == other.finish_reason
        for one, other in zip(made, expected, strict=True)
    )


@settings(max_examples=6)
@given(data=st.data())
def test_companions_order_and_delays_change_nothing(data: st.DataObject):
    check(data, count=1)


@settings(max_examples=2)  # two threads crawl on a machine whose cores are taken
@given(data=st.data())
def test_nor_do_they_with_two_threads(data: st.DataObject):
    check(data, count=2)


def check(data: st.DataObject, *, count: int) -> None:
    model = data.draw(st.sampled_from(sorted(MODELS)))
    numbers = data.draw(st.lists(st.integers(0, SESSIONS + 40), min_size=1, max_size=24))
    delays = data.draw(st.lists(st.tuples(*[st.integers(0, 60)] * 3), min_size=5, max_size=5))
    max_rows = data.draw(st.sampled_from([3, 256]))
    max_step_tokens = data.draw(st.sampled_from([50, 4096]))

    async def run() -> list[list[Completion]]:
        engine = TransformersEngine(
            MODELS[model], TOKENIZER, max_rows=max_rows, max_step_tokens=max_step_tokens
        )
        return await asyncio.gather(
            *(
                session(engine, number, copy, delays[copy % len(delays)])
                for copy, number in enumerate([*numbers, *range(SESSIONS)])
            )
        )

    with threads(count):
        made = asyncio.run(run())
    for number, completions in zip([*numbers, *range(SESSIONS)], made, strict=True):
        if number < SESSIONS:
            assert same(completions, alone(model, number, count))
