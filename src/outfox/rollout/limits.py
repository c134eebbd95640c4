"""How far an episode may go. What a policy exhausts itself is a stop reason, never an error."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from outfox.core.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one episode. Raises ConfigError for a limit that allows nothing."""

    max_turns: int = 8
    """Policy messages."""
    max_tokens: int = 4096
    """Tokens of a ledger, the prompt's included; the engine's context length if that is less."""
    max_new_tokens: int = 512
    """Policy tokens of one turn."""
    max_observation_tokens: int = 1024
    """Tokens of one observation; documents beyond are cut."""
    max_parse_errors: int = 2
    """Turns without a readable action that are fed back; one more ends the episode."""
    step_seconds: float = 120.0
    """Longest wait for one answer of the environment."""
    act_seconds: float = 3600.0
    """Longest wait for one answer of the policy."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            allowed = value >= 0 if name == "max_parse_errors" else value > 0
            if not allowed:
                least = "at least 0" if name == "max_parse_errors" else "above 0"
                raise ConfigError(f"limits.{name} is {least}; got {value}")
