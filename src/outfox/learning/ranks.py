# pyright: standard
"""Several processes that run one loop: rollouts split by task, gradients summed in rank order.

    rank 0   tasks 0, 2, 4 …   micro-batches 0, 2, …  ─┐
    rank 1   tasks 1, 3, 5 …   micro-batches 1, 3, …  ─┴─▶ every rank holds every group, and the sum

Every rank scores and credits all groups itself, so that nothing but groups and gradients travels.
The processes meet through a file, never a port.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

DEADLINE = timedelta(minutes=10)
"""Longest wait for another rank; it has then died or hangs, and the run ends."""


class GlooRanks:
    """Protocol `Ranks` over torch.distributed with gloo."""

    def __init__(self, meeting: Path, index: int, count: int) -> None:
        store = dist.FileStore(str(meeting), count)
        dist.init_process_group(
            "gloo", store=store, rank=index, world_size=count, timeout=DEADLINE
        )
        self.index = index
        self.count = count

    def gather(self, mine: Any) -> list[Any]:
        """What each rank gave, in rank order, on every rank."""
        found: list[Any] = [None] * self.count
        dist.all_gather_object(found, mine)
        return found

    def close(self) -> None:
        dist.destroy_process_group()


def summed(gradients: list[Tensor], count: int) -> None:
    """Replace each gradient by its sum over ranks, added in rank order: the same bits everywhere."""
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    rows = [torch.empty_like(flat) for _ in range(count)]
    dist.all_gather(rows, flat)
    total = rows[0]
    for row in rows[1:]:
        total += row
    offset = 0
    for gradient in gradients:
        size = gradient.numel()
        gradient.copy_(total[offset : offset + size].view_as(gradient))
        offset += size


def die_with_parent() -> None:
    """On Linux: the kernel ends this process when the one that started it is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
