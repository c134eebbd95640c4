"""Every error that Outfox raises on purpose.

    OutfoxError
    ├── ConfigError      a setting, recipe, override or user part is wrong    (exit code 2)
    ├── DataError        a row, corpus, shard or checkpoint is wrong          (exit code 2)
    ├── ContractError    a part broke the promise of its protocol             (fatal)
    ├── EngineError      the engine could not generate                 (one episode's error)
    ├── UserCodeError    code of the user's raised in its own process   (one result's error)
    └── CrashError       code of the user's ended its own process       (one result's crash)

A message states the rule, the value that broke it, and the remedy.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class OutfoxError(Exception):
    """Base of every error that Outfox raises on purpose."""


class ConfigError(OutfoxError):
    """A setting, recipe, override or user part is wrong."""


class DataError(OutfoxError):
    """A row, corpus, shard or checkpoint is wrong; the message names the row or file."""


class ContractError(OutfoxError):
    """A part (signal, credit, engine, environment, ...) broke the promise of its protocol."""


class EngineError(OutfoxError):
    """The engine could not generate; the episode ends in error, the run goes on."""


class UserCodeError(OutfoxError):
    """Code of the user's raised in a worker process, or its answer could not be sent."""


class CrashError(OutfoxError):
    """Code of the user's ended its worker process, or ran out of memory; no other call failed."""


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """`" Did you mean 'x'?"` for the closest known name, else `" Known: a, b."`."""
    names = sorted(known)
    close = difflib.get_close_matches(wrong, names, n=1)
    if close:
        return f" Did you mean '{close[0]}'?"
    return f" Known: {', '.join(names)}." if names else ""
