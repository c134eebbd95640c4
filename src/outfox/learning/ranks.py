# pyright: standard
"""Ranks over torch.distributed with gloo: several processes on one machine. They meet by a file."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from outfox.core.waiting import waiting

DEADLINE = timedelta(minutes=10)
"""Longest wait for another rank; it has then died or hangs, and the run ends."""


class GlooRanks:
    """Protocol `Ranks`. `meeting` is a file that is not there yet, the same for all ranks."""

    def __init__(self, meeting: Path, index: int, count: int) -> None:
        with waiting("the other processes to begin", DEADLINE.total_seconds()):
            dist.init_process_group(
                "gloo",
                init_method=meeting.absolute().as_uri(),
                rank=index,
                world_size=count,
                timeout=DEADLINE,
            )
        self.index = index
        self.count = count

    def gather(self, mine: Any) -> list[Any]:
        found: list[Any] = [None] * self.count
        with waiting("the other processes", DEADLINE.total_seconds()):
            dist.all_gather_object(found, mine)
        return found

    def close(self) -> None:
        dist.destroy_process_group()


def sum_over_ranks(gradients: Sequence[Tensor], count: int) -> None:
    """Replace each gradient by its sum, added in rank order: the same bits on every rank."""
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    rows = [torch.empty_like(flat) for _ in range(count)]
    with waiting("the other processes", DEADLINE.total_seconds()):
        dist.all_gather(rows, flat)
    total = rows[0]
    for row in rows[1:]:
        total += row
    sizes = [gradient.numel() for gradient in gradients]
    for gradient, part in zip(gradients, total.split(sizes), strict=True):
        gradient.copy_(part.view_as(gradient))


def begin_worker(threads: int) -> None:
    """Of a rank that another process started: end with it, and leave Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    use_threads(threads)


def use_threads(threads: int) -> None:
    torch.set_num_threads(threads)
