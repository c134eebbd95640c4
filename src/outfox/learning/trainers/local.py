# pyright: standard
"""The trainer for one process: one model, AdamW (and Muon), gradients summed over micro-batches.

    batches ─for each─▶ micro-batch ─forward, loss, backward─▶ gradients ─clip, step─▶ new weights

On-policy (one optimiser step per rollout) no old-logprob pass is made: the old logprobs are the new
ones, detached, and the difference to the rollout's is reported. With several optimiser steps, or
samples of an older policy, the rollout's logprobs are the old ones.
A reference for a KL term is a copy of what is trained, as it was at first: with LoRA the adapter's
weights alone.
The model stays in eval mode, so nothing is dropped out and no random number is drawn.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from pydantic import PositiveInt
from safetensors.torch import load_file, load_model, save_file
from torch import Tensor
from transformers import PreTrainedModel

from outfox.core.errors import ContractError, DataError
from outfox.core.ledger import Floats
from outfox.core.protocols import Need
from outfox.core.ranks import ALONE, Ranks, share
from outfox.core.results import Annotations, Batch, Sample, UpdateReport
from outfox.learning.batching.packing import pack, portions
from outfox.learning.losses.mixed import MixedLoss
from outfox.learning.losses.tokens import (
    Loss,
    Mean,
    Outputs,
    totals_of,
    trained_mask,
    trained_tokens,
)
from outfox.learning.ranks import sum_over_ranks
from outfox.learning.trainers.metrics import add_means, counts, observed
from outfox.learning.trainers.notes import Notes
from outfox.learning.trainers.optimizer import (
    Optimizer,
    Schedule,
)
from outfox.policies.loading import without_bars
from outfox.policies.logprobs import checkpointed_layers, plain_head, sequence_logprobs
from outfox.policies.lora import WEIGHTS as ADAPTER
from outfox.policies.lora import base_sum, is_adapted, load_adapter, save_adapter

STATE = "trainer.json"
MODEL = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
REFERENCE = "reference.safetensors"
ANNOTATED_TOKENS = 8192
"""Padded positions per forward pass of `annotate`."""


class LocalTrainer:
    """Owns the weights of `model` and their optimiser. Implements the Trainer protocol.

    `model` is a transformers causal language model; it is trained in place. Raises ContractError,
    naming the optimiser step, when a loss or a gradient is not finite: the weights are then those
    of the step before.

    Args:
        learning_rate: Peak rate of AdamW.
        betas: Of AdamW.
        weight_decay: Of both optimisers, per step and rate.
        max_grad_norm: Gradients are scaled down to this norm.
        warmup: Steps over which the rates rise.
        schedule: How the rates fall after that.
        schedule_steps: Step at which the fall has ended; null: there is none.
        schedule_end: Final rate as a share of the peak.
        temperature: Of a cold start; reinforcement takes `sampling.temperature`.
        recompute_old_logprobs: Old logprobs are the trainer's own, computed before the update,
            instead of the engine's.
        muon_rate: Muon trains the hidden matrices at this rate, AdamW the rest, along one schedule;
            null: AdamW trains all.
        micro_tokens: Most tokens together in a forward and backward pass.
        gradient_checkpointing: Layers are computed again in the backward pass, which takes less
            memory and changes no bit.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        loss: Loss | None = None,
        policy_version: int = 0,
        ranks: Ranks = ALONE,
        *,
        learning_rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
        max_grad_norm: float = 1.0,
        warmup: int = 0,
        schedule: Literal["constant", "linear", "cosine"] = "constant",
        schedule_steps: int | None = None,
        schedule_end: float = 0.0,
        temperature: float = 1.0,
        recompute_old_logprobs: bool = False,
        muon_rate: float | None = None,
        micro_tokens: PositiveInt = 4096,
        gradient_checkpointing: bool = False,
    ) -> None:
        plain_head(model)
        if gradient_checkpointing:
            checkpointed_layers(model)
        self._model = model.eval()
        self._adapted = is_adapted(model)
        self._trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self._loss: Loss = MixedLoss() if loss is None else loss
        rates = Schedule(
            peak=learning_rate,
            warmup=warmup,
            shape=schedule,
            steps=schedule_steps,
            end=schedule_end,
        )
        self._optimizer = Optimizer(
            model, schedule=rates, betas=betas, weight_decay=weight_decay, muon_rate=muon_rate
        )
        self._max_grad_norm = max_grad_norm
        self._temperature = temperature
        self._recompute = recompute_old_logprobs
        self._micro_tokens = micro_tokens
        self._checkpointing = gradient_checkpointing
        self._policy_version = policy_version
        self._ranks = ranks
        self._optimizer_step = 0
        self._updates = 0
        self._reference = _copied(self._trained) if self._loss.needs_reference else None

    @property
    def policy_version(self) -> int:
        return self._policy_version

    @property
    def optimizer_step(self) -> int:
        return self._optimizer_step

    @property
    def micro_tokens(self) -> int:
        return self._micro_tokens

    @property
    def needs(self) -> frozenset[Need]:
        needs: set[Need] = set()
        if self._loss.needs_reference:
            needs.add("ref_logprobs")
        if self._recompute:
            needs.add("old_logprobs")
        return frozenset(needs)

    # -- annotate ---------------------------------------------------------------------------------
    def annotate(self, samples: Sequence[Sample], needs: frozenset[Need]) -> Annotations:
        """Logprobs [T] per sample, zero where nothing is trained, under the weights of now."""
        if "values" in needs:
            raise ContractError(
                "the local trainer has no value head; use a credit that needs none, "
                "such as group-mean"
            )
        old = self._score(samples) if "old_logprobs" in needs else None
        ref = self._score_by_reference(samples) if "ref_logprobs" in needs else None
        return Annotations(samples=tuple(samples), old_logprobs=old, ref_logprobs=ref)

    def _score_by_reference(self, samples: Sequence[Sample]) -> tuple[Floats, ...]:
        if self._reference is None:
            raise ContractError(
                "reference logprobs need a reference model; set kl_coef over 0 at construction"
            )
        with _lent(self._trained, self._reference):
            return self._score(samples)

    def _score(self, samples: Sequence[Sample]) -> tuple[Floats, ...]:
        rows = {id(sample): np.zeros(len(sample), np.float32) for sample in samples}
        packed = pack(samples, max_tokens_per_micro=ANNOTATED_TOKENS)
        with torch.no_grad():
            for part in (micro for batch in packed for micro in batch.micro):
                flat = self._forward(part).logprobs.float().cpu().numpy()
                ends = np.cumsum([int(trained_mask(sample).sum()) for sample in part])
                for sample, own in zip(part, np.split(flat, ends[:-1]), strict=True):
                    rows[id(sample)][trained_mask(sample)] = own
        return tuple(rows[id(sample)] for sample in samples)

    # -- update -----------------------------------------------------------------------------------
    def update(
        self, batches: Sequence[Batch], annotations: Annotations | None = None
    ) -> UpdateReport:
        """One optimiser step per batch; an update without samples changes no weight."""
        if self._loss.needs_reference and (annotations is None or annotations.ref_logprobs is None):
            raise ContractError(
                "this loss has a KL term; annotate the samples with ref_logprobs before the update"
            )
        notes = Notes(batches, annotations, old_is_rollout=self._off_policy(batches))
        metrics: dict[str, Mean] = {}
        largest: dict[str, float] = {}
        for batch in batches:
            if batch.samples:
                add_means(metrics, self._step(batch, notes, largest))
        self._policy_version += 1
        self._updates += 1
        means = {name: mean.value for name, mean in metrics.items() if mean.count}
        return UpdateReport(
            policy_version=self._policy_version,
            optimizer_step=self._optimizer_step,
            metrics={**means, **largest, **counts(batches)},
        )

    def _off_policy(self, batches: Sequence[Batch]) -> bool:
        if len(batches) > 1:
            return True
        return any(
            sample.policy_version not in (None, self._policy_version)
            for batch in batches
            for sample in batch.samples
        )

    def _step(self, batch: Batch, notes: Notes, largest: dict[str, float]) -> dict[str, Mean]:
        count = self._ranks.count
        shares = Batch(micro=tuple(s for whole in batch.micro for s in portions(whole, count)))
        totals = totals_of(shares)
        metrics: dict[str, Mean] = {}
        loss = 0.0
        for samples in share(shares.micro, self._ranks):
            if not any(trained_mask(sample).any() for sample in samples):
                continue
            tokens = trained_tokens(
                samples,
                totals=totals,
                update=self._updates,
                device=self._device,
                old_logprobs=notes.old(samples),
                ref_logprobs=notes.ref(samples),
            )
            outputs = self._forward(samples)
            result = self._loss(tokens, outputs)
            result.loss.backward()
            loss += result.loss.item()
            add_means(metrics, result.metrics)
            add_means(metrics, observed(tokens, outputs, largest))
        if self._ranks.count > 1:
            loss = self._shared(loss, metrics, largest)
        norm, rate = self._apply(loss)
        for name, value in {"grad_norm": norm, "loss": loss, "learning_rate": rate}.items():
            metrics[name] = Mean(total=value, count=1)
        return metrics

    def _shared(self, loss: float, metrics: dict[str, Mean], largest: dict[str, float]) -> float:
        """Sum gradients, loss and metrics over ranks, in rank order; returns the whole loss."""
        gradients: list[Tensor] = []
        for parameter in self._trained.values():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        sum_over_ranks(gradients, self._ranks.count)
        parts = self._ranks.gather((loss, dict(metrics), dict(largest)))
        metrics.clear()
        for _, means, peaks in parts:
            add_means(metrics, means)
            for name, peak in peaks.items():
                largest[name] = max(peak, largest.get(name, peak))
        return sum(part[0] for part in parts)

    def _apply(self, loss: float) -> tuple[float, float]:
        """Clip and step; the gradient norm before clipping, and the learning rate."""
        norm = torch.nn.utils.clip_grad_norm_(
            self._trained.values(), self._max_grad_norm, foreach=True
        ).item()
        if not math.isfinite(loss) or not math.isfinite(norm):
            self._optimizer.zero_grad()
            raise ContractError(
                "loss and gradient must be finite; optimiser step "
                f"{self._optimizer_step + 1} has loss {loss} and gradient norm {norm}: lower the "
                "learning rate, or look at this step's advantages and rollout logprobs"
            )
        rate = self._optimizer.step(self._optimizer_step)
        self._optimizer_step += 1
        return norm, rate

    @property
    def _device(self) -> torch.device:
        return next(self._model.parameters()).device

    def _forward(self, samples: Sequence[Sample]) -> Outputs:
        """Logprobs and entropies of the trained tokens; nothing else is computed."""
        masks = [trained_mask(sample) for sample in samples]
        if any(mask[0] for mask in masks):
            raise ContractError(
                "the first token of a sequence has nothing before it that could predict it; "
                "give every sequence a prompt of at least one token"
            )
        scores = sequence_logprobs(
            self._model,
            [s.token_ids for s in samples],
            masks,
            temperature=self._temperature,
            gradient_checkpointing=self._checkpointing,
        )
        return Outputs(logprobs=scores.logprobs, entropies=scores.entropies)

    # -- weights and state ------------------------------------------------------------------------
    def weights(self) -> Mapping[str, Tensor]:
        """The state dict, detached. Views of the live weights: copy what must outlast an update."""
        return {name: tensor.detach() for name, tensor in self._model.state_dict().items()}

    def save(self, folder: Path) -> None:
        """Model or adapter in its usual layout, optimiser, counters. Nothing is pickled."""
        folder.mkdir(parents=True, exist_ok=True)
        if self._adapted:
            save_adapter(self._model, folder)
        else:
            with without_bars():
                self._model.save_pretrained(folder)
        save_file(self._optimizer.tensors(), folder / OPTIMIZER)
        if self._reference is not None:
            save_file(self._reference, folder / REFERENCE)
        state = {
            "format": 1,
            "policy_version": self._policy_version,
            "optimizer_step": self._optimizer_step,
            "updates": self._updates,
        }
        if self._adapted:
            state["base"] = base_sum(self._model)
        (folder / STATE).write_text(json.dumps(state, indent=2) + "\n")

    def load(self, folder: Path) -> None:
        """Continue exactly where `save` was called. Raises DataError for a folder that is none."""
        own, other = (ADAPTER, MODEL) if self._adapted else (MODEL, ADAPTER)
        if (folder / other).is_file() and not (folder / own).is_file():
            raise DataError(
                f"{folder} was saved {'without' if self._adapted else 'with'} model.lora: resume "
                "with the settings of the run"
            )
        for name in (STATE, OPTIMIZER, own):
            if not (folder / name).is_file():
                raise DataError(f"a trainer checkpoint holds {name}; {folder} does not")
        state = json.loads((folder / STATE).read_text())
        if state.get("format") != 1:
            raise DataError(
                f"trainer format 1 is read here; {folder / STATE} has {state.get('format')}: "
                "use the version of Outfox that wrote it"
            )
        if not self._adapted:
            load_model(self._model, str(folder / MODEL))
        elif state.get("base") == base_sum(self._model):
            load_adapter(self._model, folder)
        else:
            raise DataError(
                f"the adapter in {folder} was trained beside other weights than those of this "
                "model: give the model.path that it began with, or another cache.dir"
            )
        self._optimizer.restore(load_file(folder / OPTIMIZER))
        if self._reference is not None:
            self._reference = self._loaded_reference(folder)
        self._policy_version = int(state["policy_version"])
        self._optimizer_step = int(state["optimizer_step"])
        self._updates = int(state["updates"])

    def _loaded_reference(self, folder: Path) -> dict[str, Tensor]:
        found = load_file(folder / REFERENCE) if (folder / REFERENCE).is_file() else {}
        if found.keys() != self._trained.keys():
            raise DataError(
                f"{folder} was saved without a reference model of these weights, but kl_coef is "
                "over 0: resume with the settings of the run"
            )
        return found


def _copied(parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in parameters.items()}


@contextmanager
def _lent(parameters: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> Iterator[None]:
    """Other values in the model for a while, without a second model."""
    own = {name: parameter.data for name, parameter in parameters.items()}
    try:
        for name, parameter in parameters.items():
            parameter.data = values[name]
        yield
    finally:
        for name, parameter in parameters.items():
            parameter.data = own[name]


part = LocalTrainer
