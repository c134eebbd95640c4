"""Which episode is being played, for parts that are asked in its midst and are not told."""

from __future__ import annotations

from contextvars import ContextVar

from outfox.core.types import EpisodeKey

PLAYING: ContextVar[EpisodeKey | None] = ContextVar("playing", default=None)
"""Set by the rollout for everything that an episode awaits; None outside of episodes."""
