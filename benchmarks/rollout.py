"""Rollout speed of the tiny policy: tokens per second, share of the matrix rate, where time goes.

    OMP_NUM_THREADS=1 python benchmarks/rollout.py [--steps 10] [--weights FOLDER]
                                                   [RECIPE KEY=VALUE ...]

Two measurements, both in CPU seconds of one thread, which a busy machine disturbs less.

1. The engine alone: sessions of three turns, all different: a prompt of 25 tokens, then two
   observations of 60; a turn samples 15 to 35 tokens.
2. Whole training steps of a recipe in one process, from its cold-started weights (from the cache,
   where a run left them, or `--weights`). A sampling profiler says where the time goes.

`% of GEMM` is the time that the very matrix products of the rollout take alone over that of the
whole rollout (probe, environment and Python included). Siblings and the probe share what they have
in common; the rate for all tokens that they read and wrote is given beside.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np
import torch
from safetensors.torch import load_file
from train import product_seconds, seconds

from outfox.build import System, assemble, reinforcement
from outfox.cli.cold_start import cache_place
from outfox.cli.run import GARBAGE
from outfox.core.config import load_recipe
from outfox.core.protocols import Sampling
from outfox.core.results import StepResult
from outfox.loop import train
from outfox.policies.engines.transformers import TransformersEngine
from outfox.policies.tiny import build_model, build_tokenizer

NEW = (25, 60, 60)
STOP = ("</think>", "</search>", "</answer>")
UPDATE = "update"
PARTS = (
    ("learning/trainers", UPDATE),
    ("learning/losses", UPDATE),
    ("policies/scoring", UPDATE),
    ("policies/logprobs", UPDATE),
    ("continuous/decoder", "rollout: layers (products, norms, gates)"),
    ("continuous/attention", "rollout: attention, convolutions"),
    ("continuous/sampling", "rollout: drawing tokens"),
    ("continuous/cache", "rollout: lanes, packing"),
    ("continuous/forward", "rollout: lanes, packing"),
    ("continuous/schedule", "rollout: lanes, packing"),
    ("policies/engines", "rollout: other engine"),
    ("policies/codecs", "rollout: codec"),
    ("policies/engine_policy", "rollout: conversations"),
    ("outfox/rollout", "rollout: conversations"),
    ("when_to_search/demonstrations", "credit, samples, replay"),
    ("outfox/worlds", "environment"),
    ("outfox/rewards", "reward"),
    ("outfox/learning", "credit, samples, replay"),
    ("outfox/loop", "credit, samples, replay"),
)
"""The innermost match of a sample's stack counts."""


# -- measuring ------------------------------------------------------------------------------------
@dataclass
class Profile:
    """CPU time by part: the stack is looked at every few milliseconds."""

    counts: Counter[str] = field(default_factory=Counter)

    def look(self, _: int, frame: FrameType | None) -> None:
        while frame is not None:
            file = frame.f_code.co_filename
            part = next((part for place, part in PARTS if place in file), None)
            if part is not None:
                self.counts[part] += 1
                return
            frame = frame.f_back
        self.counts["rollout: event loop and other"] += 1

    @contextmanager
    def running(self) -> Iterator[None]:
        signal.signal(signal.SIGPROF, self.look)
        signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


@contextmanager
def products() -> Iterator[Counter[tuple[int, int, int]]]:
    """Shapes of the matrix products that the engine makes (it alone runs in inference mode)."""
    found: Counter[tuple[int, int, int]] = Counter()
    mm, addmm = torch.mm, torch.Tensor.addmm_

    def count(left: torch.Tensor, right: torch.Tensor) -> None:
        if torch.is_inference_mode_enabled():
            found[(*left.shape, right.shape[1])] += 1

    def counted_mm(left, right, **settings):
        count(left, right)
        return mm(left, right, **settings)

    def counted_addmm(self, left, right, **settings):
        count(left, right)
        return addmm(self, left, right, **settings)

    torch.mm, torch.Tensor.addmm_ = counted_mm, counted_addmm
    try:
        yield found
    finally:
        torch.mm, torch.Tensor.addmm_ = mm, addmm


def rates(shapes: Counter[tuple[int, int, int]], sampled: int, engine, spent: float) -> str:
    """One line on what a rollout reached in `spent` CPU seconds."""
    work = sum(2 * a * b * c * count for (a, b, c), count in shapes.items())
    least = product_seconds(shapes)
    fed, shared = engine
    return (
        f"{sampled / spent:,.0f} sampled tokens/s; {fed:,} tokens through the model, "
        f"{shared:,} shared; {work / spent / 1e9:.1f} GFLOP/s = {least / spent:.0%} of GEMM "
        f"({work / least / 1e9:.0f}), {least / spent * (fed + shared) / fed:.0%} with shared tokens"
    )


# -- the engine alone -----------------------------------------------------------------------------
async def session(engine: TransformersEngine, number: int) -> int:
    """All turns of one session; returns how many tokens it sampled."""
    rng, name, sampled = np.random.default_rng(number), str(number), 0
    engine.open(name, noise_key=number)
    for size in NEW:
        ids = rng.integers(300, 1800, size)
        sampling = Sampling(max_tokens=int(rng.integers(15, 36)))
        made = await engine.generate(name, ids, sampling=sampling, stop=STOP)
        sampled += len(made.token_ids)
    engine.end(name)
    return sampled


def engine_alone(sessions: int, repeats: int) -> None:
    tokenizer = build_tokenizer([f"name{number}" for number in range(1350)])
    llama = build_model(tokenizer, kv_heads=4, intermediate=320)
    short = build_model(tokenizer, convolutions=2, layers=1, heads=2, kv_heads=2, intermediate=320)
    for name, model in (("llama, 4 layers", llama), ("lfm2, 2 convolutions and 1 layer", short)):
        engine = TransformersEngine(model, tokenizer)

        async def everyone(engine=engine) -> list[int]:
            return await asyncio.gather(*(session(engine, number) for number in range(sessions)))

        asyncio.run(everyone())
        best = seconds(lambda everyone=everyone: asyncio.run(everyone()), repeats)
        fed, shared = engine.fed_tokens, engine.shared_tokens
        with products() as shapes:
            sampled = sum(asyncio.run(everyone()))
        through = engine.fed_tokens - fed, engine.shared_tokens - shared
        print(f"engine alone, {name}, {sessions} sessions: {rates(shapes, sampled, through, best)}")


# -- training steps -------------------------------------------------------------------------------
async def steps(system: System, count: int, found: list[StepResult]) -> float:
    """Make so many training steps; returns their CPU seconds."""
    lesson = reinforcement(system)
    begun = time.process_time()
    async for result in train(lesson.stage, lesson.trainer, system.engine, steps=count):
        found.append(result)
    return time.process_time() - begun


def training(options: argparse.Namespace) -> None:
    file = load_recipe(options.recipe, [*options.settings, "processes=1"])
    system = assemble(file)
    folder = Path(options.weights) if options.weights else cache_place(system)
    if not (folder / "model.safetensors").exists():
        print(f"no cold-started weights in {folder}: run `outfox train` once, or give --weights")
        return
    system.engine.load_weights(load_file(folder / "model.safetensors"), 0)
    gc.collect()
    gc.freeze()  # as a run does
    gc.set_threshold(GARBAGE)
    profile, results = Profile(), list[StepResult]()
    with profile.running(), products() as shapes:
        spent = asyncio.run(steps(system, options.steps, results))
    share = {part: count / profile.counts.total() for part, count in profile.counts.items()}
    rollout = spent * sum(
        value for part, value in share.items() if part.startswith(("rollout", "environment"))
    )
    trajectories = [t for r in results for g in r.groups for t in g.group.trajectories]
    sampled = sum(trajectory.policy_tokens for trajectory in trajectories)
    engine = system.engine
    assert isinstance(engine, TransformersEngine)
    through = engine.fed_tokens, engine.shared_tokens
    print(
        f"{system.recipe.name}: {len(results)} steps of {spent / len(results):.2f} s, "
        f"{rollout / len(results):.2f} s of it rollout and probe; the rollout's own "
        f"{rates(shapes, sampled, through, rollout)}"
    )
    for part, value in sorted(share.items(), key=lambda item: -item[1]):
        print(f"    {value * spent / len(results) * 1e3:7.1f} ms {value:6.1%}  {part}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", nargs="?", default="when-to-search")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--steps", type=int, default=10, help="training steps; 0: engine alone")
    parser.add_argument("--sessions", type=int, default=192, help="of the engine alone; 0: none")
    parser.add_argument("--weights", help="a folder with model.safetensors")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.sessions:
        engine_alone(options.sessions, options.repeats)
    if options.steps:
        training(options)


if __name__ == "__main__":
    main()
