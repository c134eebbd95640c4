"""Tokens per second of the transformers engine with the tiny policy, and where the time goes.

    python benchmarks/rollout.py [--sessions 192] [--threads 1] [--profile]

Every session has three turns: a prompt of 25 tokens, then two observations of 60; a turn samples
15 to 35 tokens. Rates are per second of CPU time, which a busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from outfox.core.protocols import Sampling
from outfox.policies.engines.transformers import TransformersEngine
from outfox.policies.tiny import build_model, build_tokenizer

NEW = (25, 60, 60)
STOP = ("</think>", "</search>", "</answer>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run took."""

    sampled: int
    fed: int
    cpu_seconds: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"sampled {self.sampled}  prefilled {self.fed - self.sampled}  "
            f"cpu {self.cpu_seconds:.2f} s  wall {self.seconds:.2f} s  "
            f"{self.sampled / self.cpu_seconds:,.0f} sampled tokens/s, "
            f"{self.fed / self.cpu_seconds:,.0f} tokens/s through the model"
        )


async def session(engine: TransformersEngine, number: int) -> int:
    """All turns of one session; returns how many tokens it sampled."""
    rng, name, sampled = np.random.default_rng(number), str(number), 0
    engine.open(name, noise_key=number)
    for size in NEW:
        ids = rng.integers(300, 2400, size)
        sampling = Sampling(max_tokens=int(rng.integers(15, 36)))
        made = await engine.generate(name, ids, sampling=sampling, stop=STOP)
        sampled += len(made.token_ids)
    engine.end(name)
    return sampled


def run(engine: TransformersEngine, sessions: int) -> Run:
    async def all_sessions() -> list[int]:
        return await asyncio.gather(*(session(engine, number) for number in range(sessions)))

    fed, cpu, wall = engine.fed_tokens, time.process_time(), time.perf_counter()
    sampled = sum(asyncio.run(all_sessions()))
    return Run(
        sampled=sampled,
        fed=engine.fed_tokens - fed,
        cpu_seconds=time.process_time() - cpu,
        seconds=time.perf_counter() - wall,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=192)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="show the costliest operations")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tokenizer = build_tokenizer([f"name{number}" for number in range(2000)])
    model = build_model(tokenizer)
    parameters = sum(weight.numel() for weight in model.parameters())
    print(f"{parameters / 1e6:.2f} M parameters, vocabulary {len(tokenizer)}, {options}")
    engine = TransformersEngine(model, tokenizer)
    run(engine, 12)
    for _ in range(options.repeats):
        print(run(engine, options.sessions))
    if options.profile:
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            run(engine, options.sessions)
        table = profiled.key_averages().table(sort_by="self_cpu_time_total", row_limit=20)
        print(table)


if __name__ == "__main__":
    main()
