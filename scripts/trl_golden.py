"""Losses, gradients and advantages as TRL 1.16 computes them, for `tests/golden`.

    pip install torch==2.13.0 "trl==1.16.*"
    python scripts/trl_golden.py tests/golden/data/trl_losses.json

TRL's own code runs here: `GRPOTrainer._compute_loss` on logits in float64, over two micro-batches
of one optimiser step, and the lines of `_generate_and_score_completions` that turn rewards into
advantages. Only what surrounds them (model, generation, logging) is stood in for.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import sys
import textwrap
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import torch
from trl.trainer import grpo_trainer

ROWS, MICRO, LENGTH, VOCABULARY = 4, 2, 6, 5
FIXED_LENGTH = 8
LENGTHS = (6, 4, 5, 6)
TOOL_MASK = ((1, 1, 0, 0, 1, 1), (1, 1, 1, 1, 1, 1), (1, 0, 0, 1, 1, 1), (1, 1, 1, 1, 1, 1))
REWARDS = {
    "plain": [[1.0, -0.5, 0.25, -0.5], [0.0, 1.0, 1.0, 0.875]],
    "unscored": [[None, -1.0, 0.5, 1.0], [0.25, None, None, 1.0]],
}
SIGNALS = [[[1.0, 0.5], [0.0, 0.25], [0.0, 1.0], [1.0, 0.0]], [[0.5, 1.0], [1, 0], [0, 0], [0, 1]]]


def inputs() -> dict[str, torch.Tensor]:
    """One optimiser step: logits, sampled ids, masks, advantages, old and reference logprobs."""
    generator = torch.Generator().manual_seed(7)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    logits = 2 * normal(ROWS, LENGTH, VOCABULARY)
    ids = torch.randint(VOCABULARY, (ROWS, LENGTH), generator=generator)
    new = logprobs_of(logits, ids)
    mask = torch.tensor([[int(t < n) for t in range(LENGTH)] for n in LENGTHS])
    return {
        "logits": logits,
        "ids": ids,
        "completion_mask": mask,
        "tool_mask": torch.tensor(TOOL_MASK),
        "advantages": torch.tensor([1.25, -0.75, 0.5, -1.0], dtype=torch.float64),
        "old": new + 0.8 * normal(ROWS, LENGTH),
        "ref": new + 0.5 * normal(ROWS, LENGTH),
    }


def logprobs_of(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0]


def trainer(settings: dict) -> grpo_trainer.GRPOTrainer:
    """A GRPOTrainer with nothing but what its loss reads."""
    made = object.__new__(grpo_trainer.GRPOTrainer)
    vars(made).update(
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level=settings["importance"],
        beta=settings["kl_coef"],
        loss_type=settings["aggregation"],
        epsilon_low=settings["clip_low"],
        epsilon_high=settings["clip_high"],
        max_completion_length=FIXED_LENGTH,
        current_gradient_accumulation_steps=ROWS // MICRO,
        use_vllm=False,
        _entropy_bonus_enabled=False,
        args=SimpleNamespace(
            delta=None, use_bias_correction_kl=False, steps_per_generation=ROWS // MICRO
        ),
        model=SimpleNamespace(training=True),
        accelerator=SimpleNamespace(
            num_processes=1, reduce=lambda x, reduction: x, gather=lambda x: x
        ),
        _metrics={"train": defaultdict(list)},
    )
    return made


def step(settings: dict, given: dict[str, torch.Tensor]) -> dict:
    """Loss and gradient with respect to the logits, summed over the micro-batches."""
    grpo = trainer(settings)
    logits = given["logits"].clone().requires_grad_()
    mask = given["completion_mask"] * given["tool_mask"]
    total = 0.0
    for start in range(0, ROWS, MICRO):
        rows = slice(start, start + MICRO)

        def outputs(*args, rows=rows, **kwargs):
            log_p = logits[rows].log_softmax(-1)
            entropies = -(log_p.exp() * log_p).sum(-1)
            return logprobs_of(logits[rows], given["ids"][rows]), entropies.detach(), None

        grpo._get_per_token_logps_and_entropies = outputs
        batch = {
            "prompt_ids": torch.zeros(MICRO, 1, dtype=torch.long),
            "prompt_mask": torch.ones(MICRO, 1, dtype=torch.long),
            "completion_ids": given["ids"][rows],
            "completion_mask": given["completion_mask"][rows],
            "tool_mask": given["tool_mask"][rows],
            "advantages": given["advantages"][rows],
            "ref_per_token_logps": given["ref"][rows],
            "num_items_in_batch": mask.sum(),
        }
        if not settings["on_policy"]:
            batch["old_per_token_logps"] = given["old"][rows]
        loss = grpo._compute_loss(None, batch)
        loss.backward()
        total += loss.item()
    return {"settings": settings, "loss": total, "gradient": logits.grad.tolist()}


def cases() -> list[dict]:
    clips = ((0.2, 0.2), (0.2, 0.28), (0.1, 0.4))
    grid = itertools.product(
        ("grpo", "dr_grpo", "dapo", "bnpo"), clips, (0.0, 0.04), ("token", "sequence")
    )
    found = [
        {
            "aggregation": aggregation,
            "clip_low": low,
            "clip_high": high,
            "kl_coef": kl_coef,
            "importance": importance,
            "on_policy": False,
        }
        for aggregation, (low, high), kl_coef, importance in grid
    ]
    on_policy = [dict(c, on_policy=True) for c in found if c["clip_high"] == 0.2]
    return found + on_policy


def advantage_code() -> str:
    """TRL's lines from rewards per function to advantages."""
    method = grpo_trainer.GRPOTrainer._generate_and_score_completions
    source = textwrap.dedent(inspect.getsource(method))
    body = ast.parse(source).body[0].body
    text = [ast.get_source_segment(source, node) for node in body]
    first = next(k for k, line in enumerate(text) if line.startswith("unscorable_mask ="))
    last = next(k for k, line in enumerate(text) if "advantages = torch.nan_to_num" in line)
    return "\n".join(ast.unparse(node) for node in body[first : last + 1])


def advantages(rewards: torch.Tensor, *, scale: str, aggregation: str) -> list[float]:
    """`rewards` [rows, functions]; groups of four."""
    count = rewards.shape[1]
    scope = dict(
        vars(grpo_trainer),
        self=SimpleNamespace(
            multi_objective_aggregation=aggregation,
            reward_weights=torch.ones(count, dtype=torch.float64),
            scale_rewards=scale,
            reward_funcs=[None] * count,
        ),
        rewards_per_func=rewards,
        num_generations=4,
        device=rewards.device,
    )
    exec(advantage_code(), scope)
    return scope["advantages"].tolist()


def advantage_cases() -> list[dict]:
    found = []
    for name, groups in REWARDS.items():
        flat = [float("nan") if r is None else r for group in groups for r in group]
        rewards = torch.tensor(flat, dtype=torch.float64)[:, None]
        for scale in ("group", "batch", "none"):
            result = advantages(rewards, scale=scale, aggregation="sum_then_normalize")
            found.append({"name": name, "scale": scale, "groups": groups, "advantages": result})
    return found


def decoupled_case() -> dict:
    rewards = torch.tensor([s for group in SIGNALS for s in group], dtype=torch.float64)
    result = advantages(rewards, scale="group", aggregation="normalize_then_sum")
    return {"groups": SIGNALS, "advantages": result}


def main(path: Path) -> None:
    given = inputs()
    data = {
        "trl": version("trl"),
        "torch": torch.__version__,
        "fixed_length": FIXED_LENGTH,
        "micro": MICRO,
        "inputs": {name: tensor.tolist() for name, tensor in given.items()},
        "losses": [step(settings, given) for settings in cases()],
        "advantages": advantage_cases(),
        "decoupled": decoupled_case(),
    }
    path.write_text(json.dumps(data) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
