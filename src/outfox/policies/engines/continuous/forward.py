# pyright: standard
"""One step through the model: feeds in, logits of the sessions that get a new token out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from outfox.policies.engines.continuous.attention import (
    BLOCK,
    Packed,
    Prefill,
    attending,
    padded,
)
from outfox.policies.engines.continuous.cache import Cache
from outfox.policies.engines.continuous.schedule import Feed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fed:
    """What a step gave."""

    samples: list[Feed]
    """The feeds that end with a new token."""
    logits: Tensor
    """[len(samples), vocabulary]"""


class Forward:
    """Feeds tokens of many sessions through a model, with one cache for all."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self.cache = Cache()
        self.fed_tokens = 0

    def __call__(self, feeds: Sequence[Feed]) -> Fed:
        """Feed them and mark their tokens as cached."""
        ordered, decode = self._placed(feeds)
        packed, ids = self._packed(ordered, decode)
        ends, count = [], 0
        for feed in ordered:
            count += feed.count
            if feed.samples:
                ends.append(count - 1)
        samples = [feed for feed in ordered if feed.samples]
        logits = self._logits(packed, ids, ends)
        for feed in ordered:
            feed.job.session.cached += feed.count
        self.fed_tokens += count
        return Fed(samples=samples, logits=logits[: len(samples)])

    def _placed(self, feeds: Sequence[Feed]) -> tuple[list[Feed], int]:
        """Feeds in packed order: those that decode by cache row, then the rest; how many decode."""
        by_name = {feed.job.session.name: feed for feed in feeds}
        longest = max(feed.job.session.cached + feed.count for feed in feeds)
        self.cache.reserve(by_name, longest)
        names = [name for name, feed in by_name.items() if feed.decode]
        placed = self.cache.arrange(names, self.cache.capacity)
        rest = [feed for feed in feeds if not feed.decode]
        return [*(by_name[name] for name in placed), *rest], len(names)

    def _packed(self, feeds: Sequence[Feed], decode: int) -> tuple[Packed, list[int]]:
        ids: list[int] = []
        rows: list[int] = []
        positions: list[int] = []
        prefills: list[Prefill] = []
        for feed in feeds:
            session, row = feed.job.session, self.cache.row(feed.job.session.name)
            past, end = session.cached, session.cached + feed.count
            if not feed.decode:
                start = len(ids)
                prefills.append(Prefill(start=start, stop=start + feed.count, row=row, past=past))
            ids += session.tokens[past:end]
            rows += [row] * feed.count
            positions += range(past, end)
        longest = max(positions[:decode], default=0) + 1
        device = self._model.device
        packed = Packed(
            cache=self.cache,
            rows=torch.tensor(rows, device=device),
            positions=torch.tensor(positions, device=device),
            decode=decode,
            prefills=tuple(prefills),
            width=-(-longest // BLOCK) * BLOCK,
        )
        return packed, ids

    def _logits(self, packed: Packed, ids: Sequence[int], ends: Sequence[int]) -> Tensor:
        """Logits at the packed positions `ends`, followed by padding."""
        device, fill = self._model.device, padded(len(ids)) - len(ids)
        positions = torch.nn.functional.pad(packed.positions, (0, fill))
        keep = [*ends, *[0] * (padded(len(ends)) - len(ends))]
        with attending(self._model):
            output = self._model(
                input_ids=torch.tensor([[*ids, *[0] * fill]], device=device),
                position_ids=positions[None],
                use_cache=False,
                logits_to_keep=torch.tensor(keep, device=device),
                packed_step=packed,
            )
        return output.logits[0]
