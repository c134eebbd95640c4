# pyright: standard
"""One step through the model: feeds in, logits of the sessions that get a new token out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from outfox.core.errors import ConfigError
from outfox.policies.engines.continuous.attention import (
    BLOCK,
    Packed,
    Prefill,
    attending,
    padded,
)
from outfox.policies.engines.continuous.cache import Cache
from outfox.policies.engines.continuous.schedule import Feed, Session


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fed:
    """What a step gave."""

    samples: list[int]
    """Indices of the feeds that end with a new token."""
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
        order, decode = self._order(feeds)
        ordered = [feeds[index] for index in order]
        packed, ids = self._packed(ordered, decode)
        samples = [index for index in order if feeds[index].samples]
        ends = np.cumsum([feed.count for feed in ordered]) - 1
        keep = [int(end) for end, feed in zip(ends, ordered, strict=True) if feed.samples]
        logits = self._logits(packed, ids, keep)
        for feed in feeds:
            feed.session.cached += feed.count
        self.fed_tokens += len(ids)
        return Fed(samples=samples, logits=logits[: len(samples)])

    def _order(self, feeds: Sequence[Feed]) -> tuple[list[int], int]:
        """Feeds as they are packed: decoding ones by cache row, then the rest; how many."""
        index = {feed.session.name: i for i, feed in enumerate(feeds)}
        self.cache.reserve(index, max(feed.session.cached + feed.count for feed in feeds))
        decoding = self.cache.arrange([feed.session.name for feed in feeds if feed.decode])
        rest = [i for i, feed in enumerate(feeds) if not feed.decode]
        return [*(index[name] for name in decoding), *rest], len(decoding)

    def _packed(self, feeds: Sequence[Feed], decode: int) -> tuple[Packed, list[int]]:
        ids: list[int] = []
        rows: list[int] = []
        positions: list[int] = []
        prefills: list[Prefill] = []
        for feed in feeds:
            session, row = feed.session, self.cache.row(feed.session.name)
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
        if self._model.training:  # a trainer may share the model
            self._model.eval()
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


@torch.inference_mode()
def check_model(model: PreTrainedModel) -> None:
    """Compare a packed prefill and two packed decode steps with the model's ordinary forward.

    Raises ConfigError where they differ: the architecture does more than plain causal attention.
    """
    tokens = [(7 * i + 3) % model.config.get_text_config().vocab_size for i in range(6)]
    session = Session(name="check", noise_key=0, tokens=tokens)
    other = Session(name="other", noise_key=0, tokens=tokens[:1])
    forward = Forward(model)
    feeds = [
        Feed(session=session, count=4, decode=False),
        Feed(session=other, count=1, decode=True),
    ]
    forward(feeds)
    forward([Feed(session=session, count=1, decode=True)])
    made = forward([Feed(session=session, count=1, decode=True)]).logits
    whole = model(input_ids=torch.tensor([tokens], device=model.device), use_cache=False)
    expected = whole.logits[0, -1].float().log_softmax(-1)
    difference = (made[0].float().log_softmax(-1) - expected).abs().max().item()
    if not difference <= (1e-3 if model.dtype in (torch.float32, torch.float64) else 0.2):
        raise ConfigError(
            "The transformers engine runs models of plain causal attention; logprobs of "
            f"{type(model).__name__} differ from its own forward by {difference:.3g}. Use another "
            "engine."
        )
