"""Training speed of the tiny policy: how much of the measured matrix rate an update reaches.

    OMP_NUM_THREADS=1 python benchmarks/train.py [--model lfm2] [--batch cold] [--table]

Two batches like the main recipe's: demonstrations of a cold start, and groups of siblings. Each is
trained on by the own path and by transformers' (the general one), in turns; times are CPU seconds
of one thread, the best of several. The rate of the matrix products is measured beside, for the very
shapes that the update multiplies: `% of GEMM` is the time that these products would take alone,
over that of the whole update. Products of attention are not among them.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import Lfm2Config, Lfm2ForCausalLM, LlamaConfig, LlamaForCausalLM

from outfox.core.results import Batch, Sample
from outfox.learning.batching.packing import pack
from outfox.learning.trainers.local import LocalTrainer

VOCABULARY = 1815
PRODUCTS = ("aten.mm", "aten.addmm")
KINDS = {  # by what is in an operation's name
    "attention": ("bmm", "softmax", "scaled_dot"),
    "optimiser": ("adamw", "foreach"),
}


# -- what is trained ------------------------------------------------------------------------------
def make_model(kind: str) -> LlamaForCausalLM | Lfm2ForCausalLM:
    torch.manual_seed(0)
    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": 128,
        "intermediate_size": 320,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "max_position_embeddings": 512,
        "tie_word_embeddings": True,
    }
    if kind == "llama":
        return LlamaForCausalLM(LlamaConfig(**sizes))
    layers = ["conv", "conv", "full_attention", "full_attention"]
    return Lfm2ForCausalLM(Lfm2Config(**sizes, layer_types=layers, block_auto_adjust_ff_dim=False))


def sample(draw: random.Random, beginning: Sequence[int], mask: Sequence[bool]) -> Sample:
    """A sequence that begins with given tokens; the rest is drawn."""
    trained = np.array(mask)
    new = [draw.randrange(VOCABULARY) for _ in range(len(mask) - len(beginning))]
    return Sample(
        token_ids=np.array([*beginning, *new], np.int64),
        loss_mask=trained,
        rollout_logprobs=np.where(trained, -2.0, 0.0).astype(np.float32),
        advantages=np.where(trained, draw.choice([-1.0, 1.0]), 0.0).astype(np.float32),
        weights=np.ones(len(mask), np.float32),
    )


def cold(draw: random.Random) -> list[Sample]:
    """32 demonstrations of 16 to 116 tokens, a quarter of them trained."""
    found: list[Sample] = []
    for _ in range(32):
        mask = [False] * draw.randint(10, 16)
        for _ in range(draw.choice([0, 0, 1, 1, 2])):
            mask += [True] * draw.randint(5, 9) + [False] * draw.randint(25, 35)
        found.append(sample(draw, (), [*mask, *[True] * draw.randint(5, 9)]))
    return found


def reinforce(draw: random.Random) -> list[Sample]:
    """Eight siblings of each of 15 questions, with up to three calls; each goes with an earlier
    sibling for a while."""
    found: list[Sample] = []
    for _ in range(15):
        siblings: list[list[int]] = [[draw.randrange(VOCABULARY) for _ in range(14)]]
        longest = draw.randint(0, 3)
        for _ in range(8):
            mask = [False] * 14
            for _ in range(draw.randint(min(longest, 1), longest)):
                mask += [True] * draw.randint(8, 14) + [False] * draw.randint(20, 30)
            mask += [True] * draw.randint(6, 10)
            earlier = draw.choice(siblings)
            common = draw.randint(14, max(14, min(len(earlier), len(mask)) // 2))
            found.append(sample(draw, earlier[:common], mask))
            siblings.append(found[-1].token_ids.tolist())
    return found


# -- measuring ------------------------------------------------------------------------------------
def seconds(work: Callable[[], object], repeats: int) -> float:
    """CPU seconds, the best of several."""
    best = float("inf")
    for _ in range(repeats):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best


@dataclass
class Clock(TorchDispatchMode):
    """CPU time of every operation by kind and phase, and the shapes of matrix products."""

    times: Counter[str] = field(default_factory=Counter)
    shapes: Counter[tuple[int, int, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        begun = time.thread_time()
        result = func(*args, **(kwargs or {}))
        spent = time.thread_time() - begun
        name = str(func)
        kind = next((k for k, names in KINDS.items() if any(n in name for n in names)), None)
        if kind is None and name.startswith(PRODUCTS):
            left, right = (a for a in args[-2:] if isinstance(a, torch.Tensor))
            shape = (*left.shape, right.shape[1])
            self.shapes[shape] += 1
            kind = "products, head" if VOCABULARY in shape else "products, layers"
        phase = "backward" if torch._C._current_autograd_node() else "forward"
        kind = kind or "element-wise, gathers"
        self.times[kind if kind == "optimiser" else f"{kind} {phase}"] += spent
        return result


def product_seconds(shapes: Counter[tuple[int, int, int]]) -> float:
    """CPU seconds that these matrix products take by themselves."""
    total = 0.0
    for (rows, inner, columns), count in shapes.items():
        left, right = torch.randn(rows, inner), torch.randn(inner, columns)
        out = torch.empty(rows, columns)

        def ten(left=left, right=right, out=out) -> None:
            for _ in range(10):
                torch.mm(left, right, out=out)

        total += count * seconds(ten, 5) / 10
    return total


@dataclass
class Path:
    """A trainer, and what was measured of it."""

    name: str
    trainer: LocalTrainer
    best: float = float("inf")


def compare(kind: str, batches: tuple[Batch, ...], options: argparse.Namespace) -> None:
    own, general = make_model(kind), make_model(kind)
    general.register_forward_hook(lambda *_: None)  # Anything added: the general path.
    paths = [
        Path(name, LocalTrainer(model, learning_rate=1e-4))
        for name, model in (("own", own), ("general", general))
    ]
    tokens = sum(map(len, batches[0].samples))
    for path in [*paths, *paths * options.repeats]:  # In turns, for the machine may be shared.
        path.best = min(path.best, seconds(lambda path=path: path.trainer.update(batches), 1))
    for path in paths:
        with Clock() as clock:
            path.trainer.update(batches)
        alone = product_seconds(clock.shapes)
        work = sum(2 * a * b * c * count for (a, b, c), count in clock.shapes.items())
        print(
            f"  {path.name:8s}{tokens / path.best:7.0f} tokens/s{path.best * 1e3:8.1f} ms"
            f"{work / path.best / 1e9:7.1f} GFLOP/s = {alone / path.best:4.0%} of GEMM "
            f"({work / alone / 1e9:.0f})"
        )
        if options.table:
            table(clock.times, path.best)
    print(f"  own is {paths[1].best / paths[0].best:.2f} times as fast")


def table(times: Counter[str], whole: float) -> None:
    rest = whole - sum(times.values())
    for kind, spent in [*sorted(times.items()), ("Python and dispatch", rest)]:
        print(f"      {spent * 1e3:7.1f} ms {spent / whole:6.1%}  {kind}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=["llama", "lfm2"], nargs="*", default=["llama", "lfm2"])
    parser.add_argument("--batch", choices=BATCHES, nargs="*", default=[*BATCHES])
    parser.add_argument("--micro", type=int, default=2048, help="tokens per micro-batch")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--table", action="store_true", help="show where the time goes")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for kind in options.model:
        for name in options.batch:
            rows = BATCHES[name](random.Random(0))
            trained = sum(int(row.loss_mask.sum()) for row in rows)
            size = sum(map(len, rows))
            print(f"{kind}, {name}: {len(rows)} sequences, {size} tokens, {trained} trained")
            compare(kind, pack(rows, max_tokens_per_micro=options.micro), options)


BATCHES = {"cold": cold, "reinforce": reinforce}

if __name__ == "__main__":
    main()
