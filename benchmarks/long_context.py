"""Memory and time of one forward and backward pass over one long sequence, in several ways.

    OMP_NUM_THREADS=1 python benchmarks/long_context.py [--lengths 512 1024] [--ways plain outfox]

    plain               transformers' forward, all logits, their log_softmax, autograd
    outfox              `sequence_logprobs`: logits and attention in parts
    outfox, again       the same with gradient_checkpointing
    outfox, lora        the same with an adapter of rank 16 (needs peft); and with both

The model has the shape of SmolLM2-135M (weights are drawn; `--model FOLDER` takes real ones), in
float32, every token but the first is trained. Each measurement is a process of its own: `peak` is
the most memory that it ever held, weights, gradients and Python included; `seconds` are CPU seconds
of the pass.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from outfox.core.recipe import LoraSettings
from outfox.policies.loading import LoadedModel
from outfox.policies.logprobs import sequence_logprobs
from outfox.policies.lora import with_lora

WAYS = ("plain", "outfox", "outfox, again", "outfox, lora", "outfox, lora, again")


def make_model(folder: str | None) -> PreTrainedModel:
    if folder is not None:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config).eval()


def plain(model: PreTrainedModel, ids: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """[T - 1] log-probabilities and entropies."""
    tokens = torch.from_numpy(ids)[None]
    logp = model(input_ids=tokens, use_cache=False).logits[0, :-1].log_softmax(-1)
    return logp.gather(-1, tokens[0, 1:, None])[:, 0], -(logp.exp() * logp).sum(-1)


def measure(way: str, length: int, folder: str | None) -> dict[str, float]:
    torch.set_num_threads(1)
    model = make_model(folder)
    if "lora" in way:
        with_lora(LoadedModel(model=model, tokenizer=None), LoraSettings(), seed=0)
    ids = np.random.default_rng(0).integers(0, model.config.vocab_size, length)
    begun = time.process_time()
    if way == "plain":
        logprobs, entropies = plain(model, ids)
    else:
        again = "again" in way
        scores = sequence_logprobs(
            model, [ids], [np.arange(length) > 0], gradient_checkpointing=again
        )
        logprobs, entropies = scores.logprobs, scores.entropies
    (-logprobs.mean() - 0.01 * entropies.mean()).backward()
    seconds = time.process_time() - begun
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norm = torch.linalg.vector_norm(torch.stack([g.norm() for g in gradients]))
    return {
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "seconds": seconds,
        "logprob": logprobs.mean().item(),
        "gradient": norm.item(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="*", default=[512, 1024, 2048, 4096])
    parser.add_argument("--ways", choices=WAYS, nargs="*", default=[*WAYS])
    parser.add_argument("--model", help="a model folder instead of drawn weights")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]), options.model)))
        return
    model = ["--model", options.model] if options.model else []
    print(f"{'way':22s}{'tokens':>8s}{'peak GiB':>10s}{'seconds':>9s}{'logprob':>11s}{'norm':>9s}")
    for length in options.lengths:
        for way in options.ways:
            words = [sys.executable, __file__, "--one", way, str(length), *model]
            done = subprocess.run(words, stdout=subprocess.PIPE, check=False, text=True)
            if done.returncode:
                print(f"{way:22s}{length:8d}  ended with exit code {done.returncode}", flush=True)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            print(
                f"{way:22s}{length:8d}{found['peak']:10.2f}{found['seconds']:9.1f}"
                f"{found['logprob']:11.5f}{found['gradient']:9.5f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
