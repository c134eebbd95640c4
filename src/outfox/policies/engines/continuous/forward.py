# pyright: standard
"""One step through the model: feeds in, logits of those that get a new token out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from outfox.core.errors import ConfigError
from outfox.policies.engines.continuous.attention import (
    Packed,
    Part,
    Piece,
    attending,
    batches,
    padded,
)
from outfox.policies.engines.continuous.cache import Cache, Shelf
from outfox.policies.engines.continuous.decoder import Decoder, decoder
from outfox.policies.engines.continuous.lanes import Lane
from outfox.policies.engines.continuous.schedule import Feed, Session
from outfox.policies.loading import without_notices


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fed:
    """What a step gave."""

    feeds: list[Feed]
    """Those that end with a new token."""
    logits: Tensor
    """[len(feeds), vocabulary]"""


class Forward:
    """Feeds tokens of many sessions through a model, with one cache for all."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self._decoder: Decoder | None = decoder(model)
        self.cache = Cache()
        self.fed_tokens = 0
        self.shared_tokens = 0

    def refresh(self) -> None:
        """Take the model's weights as they are now."""
        self._decoder = decoder(self._model)

    def __call__(self, feeds: Sequence[Feed]) -> Fed:
        """Feed them and mark their tokens as cached."""
        shelves: dict[int, list[tuple[Feed, Lane]]] = {}
        for feed, lane in zip(feeds, self._place(feeds), strict=True):
            shelves.setdefault(lane.width, []).append((feed, lane))
        parts: list[Part] = []
        order: list[Feed] = []
        for width, placed in shelves.items():
            shelf = self.cache.shelf(width)
            shelf.gather([lane for _, lane in placed])
            placed.sort(key=lambda each: (len(each[0].ids) > 1, each[1].row))
            parts.append(self._part(shelf, placed, parts[-1].stop if parts else 0))
            order += [feed for feed, _ in placed]
        ids = [token for feed in order for token in feed.ids]
        ends = np.cumsum([len(feed.ids) for feed in order]) - 1
        wanted = [feed for feed in order if feed.samples]
        keep = [int(end) for end, feed in zip(ends, order, strict=True) if feed.samples]
        logits = self._logits(Packed(parts=tuple(parts)), ids, keep)
        for feed in feeds:
            for session in feed.sessions:
                session.cached += len(feed.ids)
            self.shared_tokens += len(feed.ids) * (len(feed.sessions) - 1)
        self.fed_tokens += len(ids)
        return Fed(feeds=wanted, logits=logits[: len(wanted)])

    # -- lanes ------------------------------------------------------------------------------------
    def hold(self, session: Session, lane: Lane, cached: int) -> None:
        """The session stands at `cached` of a lane from now on."""
        self.leave(session)
        lane.holders += 1
        session.lane, session.cached = lane, cached

    def leave(self, session: Session) -> None:
        lane, session.lane = session.lane, None
        if lane is not None:
            lane.holders -= 1
            if not lane.holders:
                self.cache.release(lane)

    def _place(self, feeds: Sequence[Feed]) -> list[Lane]:
        """The lane that each feed is written to; its sessions hold it."""
        lanes: list[Lane] = []
        for feed in feeds:
            lane, length = feed.sessions[0].lane, feed.past + len(feed.ids)
            if lane is None:
                lane = self.cache.new(length)
            elif lane.length != feed.past and lane.holders > len(feed.sessions):
                lane = self.cache.copy(lane, length)
            else:
                self.cache.move(lane, length)
            if lane is not feed.sessions[0].lane:
                for session in feed.sessions:
                    self.hold(session, lane, feed.past)
            lane.length = length
            lanes.append(lane)
        self.cache.settle()
        return lanes

    # -- the model --------------------------------------------------------------------------------
    def _part(self, shelf: Shelf, placed: Sequence[tuple[Feed, Lane]], start: int) -> Part:
        """Lanes of one shelf, those that decode first and in the order of rows."""
        rows: list[int] = []
        positions: list[int] = []
        pieces: list[Piece] = []
        decode = span = 0
        for feed, lane in placed:
            count = len(feed.ids)
            if count == 1:
                decode, span = decode + 1, lane.row + 1
            else:
                at = start + len(rows)
                pieces.append(Piece(start=at, count=count, row=lane.row, past=feed.past))
            rows += [lane.row] * count
            positions += range(feed.past, feed.past + count)
        device = self._model.device
        batched, long = batches(pieces, device)
        where = torch.tensor([rows, positions], device=device)
        return Part(
            shelf=shelf,
            start=start,
            stop=start + len(rows),
            rows=where[0],
            positions=where[1],
            decode=decode,
            span=span,
            batches=tuple(batched),
            long=tuple(long),
        )

    def _logits(self, packed: Packed, ids: Sequence[int], ends: Sequence[int]) -> Tensor:
        """Logits at the packed positions `ends`, followed by padding."""
        device, fill = self._model.device, padded(len(ids)) - len(ids)
        tokens = torch.tensor([*ids, *[0] * fill], device=device)
        positions = torch.cat([part.positions for part in packed.parts])
        positions = torch.nn.functional.pad(positions, (0, fill))
        keep = torch.tensor([*ends, *[0] * (padded(len(ends)) - len(ends))], device=device)
        if self._decoder is not None:
            return self._decoder(tokens, positions, keep, packed)
        if self._model.training:  # a trainer may share the model
            self._model.eval()
        with attending(self._model):
            output = self._model(
                input_ids=tokens[None],
                position_ids=positions[None],
                use_cache=False,
                logits_to_keep=keep,
                packed_step=packed,
            )
        return output.logits[0]


@torch.inference_mode()
def check_model(model: PreTrainedModel) -> None:
    """Compare a packed prefill and two packed decode steps with the model's ordinary forward.

    Raises ConfigError where they differ: the architecture does more than plain causal attention.
    """
    tokens = [(7 * i + 3) % model.config.get_text_config().vocab_size for i in range(6)]
    session = Session(name="check", noise_key=0)
    other = Session(name="other", noise_key=0)
    forward = Forward(model)
    forward.refresh()
    forward([_feed(session, tokens[:4]), _feed(other, tokens[:1])])
    forward([_feed(session, tokens[4:5])])
    made = forward([_feed(session, tokens[5:])]).logits
    with without_notices():
        whole = model(input_ids=torch.tensor([tokens], device=model.device), use_cache=False)
    expected = whole.logits[0, -1].float().log_softmax(-1)
    difference = (made[0].float().log_softmax(-1) - expected).abs().max().item()
    if not difference <= (1e-3 if model.dtype in (torch.float32, torch.float64) else 0.2):
        raise ConfigError(
            "The transformers engine runs models of plain causal attention, and LFM2 in float32; "
            f"logprobs of {type(model).__name__} differ from its own forward by {difference:.3g}. "
            "Use another engine."
        )


def _feed(session: Session, ids: Sequence[int]) -> Feed:
    return Feed(sessions=[session], jobs=[], past=session.cached, ids=tuple(ids), samples=True)
