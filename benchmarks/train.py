"""Training speed of the tiny policy: tokens per second, and where the time goes.

    OMP_NUM_THREADS=1 python benchmarks/train.py [--profile]

Sequences look like the first world's: a prompt, short policy turns, observations in between.
"""

from __future__ import annotations

import argparse
import random
import time

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from outfox.core.results import Sample
from outfox.learning.batching.packing import pack
from outfox.learning.trainers.local import LocalTrainer


def tiny_model(vocabulary: int = 2500) -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=128,
            intermediate_size=320,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=1,
            max_position_embeddings=512,
            tie_word_embeddings=True,
        )
    )


def samples(count: int, vocabulary: int = 2500, seed: int = 0) -> list[Sample]:
    """Prompt of 20 to 40; up to three turns of 8 to 16 tokens, each with 40 to 60 observed."""
    draw = random.Random(seed)
    found: list[Sample] = []
    for _ in range(count):
        mask = [False] * draw.randint(20, 40)
        for _ in range(draw.randint(0, 2)):
            mask += [True] * draw.randint(8, 16) + [False] * draw.randint(40, 60)
        mask += [True] * draw.randint(8, 16)
        loss_mask = np.array(mask)
        found.append(
            Sample(
                token_ids=np.array([draw.randrange(vocabulary) for _ in mask], np.int64),
                loss_mask=loss_mask,
                rollout_logprobs=np.where(loss_mask, -2.0, 0.0).astype(np.float32),
                advantages=np.where(loss_mask, draw.choice([-1.0, 1.0]), 0.0).astype(np.float32),
                weights=np.ones(len(mask), np.float32),
            )
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=192)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--micro", type=int, nargs="*", default=[1024, 2048, 4096, 8192])
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = samples(options.count)
    total = sum(map(len, rows))
    trained = sum(int(row.loss_mask.sum()) for row in rows)
    print(f"{len(rows)} sequences, {total} tokens, {trained} trained")
    for micro in options.micro:
        trainer = LocalTrainer(tiny_model(), learning_rate=1e-3)
        batches = pack(rows, max_tokens_per_micro=micro)
        trainer.update(batches)
        timed = [_seconds(trainer, batches) for _ in range(options.repeats)]
        wall, cpu = map(min, zip(*timed, strict=True))
        print(
            f"micro {micro:5d}: {total / wall:6.0f} tokens/s, {total / cpu:6.0f} per CPU second, "
            f"{len(batches[0].micro)} micro-batches"
        )
        if options.profile:
            _profile(trainer, batches)


def _seconds(trainer: LocalTrainer, batches) -> tuple[float, float]:
    """Wall-clock and CPU seconds of one update; they differ where the machine is busy."""
    wall, cpu = time.perf_counter(), time.process_time()
    trainer.update(batches)
    return time.perf_counter() - wall, time.process_time() - cpu


KINDS = {
    "matrix products": ("aten::mm", "aten::addmm", "aten::bmm"),
    "attention": ("scaled_dot_product",),
    "softmax over the vocabulary": ("log_softmax",),
    "optimiser": ("adam", "foreach", "norm"),
}


def _profile(trainer: LocalTrainer, batches) -> None:
    """Print the share of each kind of work."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        trainer.update(batches)
    shares = dict.fromkeys([*KINDS, "everything else"], 0.0)
    for event in profile.key_averages():
        hits = (kind for kind, names in KINDS.items() if any(n in event.key for n in names))
        shares[next(hits, "everything else")] += event.self_cpu_time_total
    total = sum(shares.values())
    for kind, spent in shares.items():
        print(f"    {spent / total:6.1%}  {kind}")


if __name__ == "__main__":
    main()
