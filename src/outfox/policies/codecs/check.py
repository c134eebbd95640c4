"""Start-up self-test of a codec: can template, tokenizer and parser make a round trip?"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from outfox.core.errors import ConfigError, did_you_mean
from outfox.core.protocols import Codec
from outfox.core.types import Action, Message, ToolCall
from outfox.policies.codecs.markup import same_action

_QUERY = "capital of France"
_ACTIONS = (
    Action(calls=(ToolCall(id="call", name="search", arguments={"query": _QUERY}),)),
    Action(answer="Paris"),
    Action(answer="法国 巴黎", citations=("d1", "d2")),
)
_QUESTION = Message(role="user", content="question")
_RESULTS = (Message(role="tool", content="first"), Message(role="tool", content="second"))


def check_codec(codec: Codec) -> None:
    """Passes silently where a policy that writes as the codec asks is read as it meant.

    Raises ConfigError naming the step that failed: what is written, encoded and decoded parses to
    the same action; a stop string ends every action; an opening is a prefix of the same history
    gone on; several results stay in order; a limit is kept.
    """
    for action in _ACTIONS:
        _round_trip(codec, action)
    written = codec.write(_ACTIONS[0])
    opening = codec.render([_QUESTION], ()).token_ids
    observed = codec.extend(_RESULTS).token_ids
    history = codec.render([_QUESTION, Message(role="assistant", content=written), *_RESULTS], ())
    parts = [opening, codec.encode(written), observed]
    if not np.array_equal(history.token_ids, np.concatenate(parts)):
        raise ConfigError(
            "what was rendered stays a prefix of what follows; this codec renders a history "
            "differently in one go and turn by turn: use another chat template or codec"
        )
    text = codec.decode(observed)
    if not 0 <= text.find("first") < text.find("second"):
        raise ConfigError(f"several results stay in call order; they were rendered as {text!r}")
    full = len(observed)
    exact, cut = codec.extend(_RESULTS, full), codec.extend(_RESULTS, full - 1)
    if exact.truncated or not cut.truncated or len(cut.token_ids) >= full:
        raise ConfigError(
            f"an observation of exactly the limit ({full} tokens) is kept and one above it is cut; "
            f"got truncated={exact.truncated} and {cut.truncated}"
        )


def check_spans(codec: Codec, names: Collection[str], *, key: str) -> None:
    """Raises ConfigError where the codec names no such span in what it writes itself."""
    known = {
        span.name
        for action in _ACTIONS
        for seen in (False, True)
        for span in codec.spans(codec.encode(codec.write(action, "a : b")), after_observation=seen)
    }
    _check_known(names, known, f"{key}: the codec names no span")


def check_pauses(codec: Codec, names: Collection[str], *, key: str) -> None:
    """Raises ConfigError where the codec does not pause at such a span in what it writes itself."""
    text = codec.write(_ACTIONS[0], "a : b")
    known = {
        codec.parse(text[:end], finished=False, after_observation=seen).paused or ""
        for end in range(len(text))
        for seen in (False, True)
    }
    _check_known(names, known - {""}, f"{key}: the codec does not pause at")


def _check_known(names: Collection[str], known: Collection[str], rule: str) -> None:
    for name in names:
        if name not in known:
            raise ConfigError(f"{rule} '{name}'.{did_you_mean(name, known)}")


def _round_trip(codec: Codec, action: Action) -> None:
    text = codec.write(action, "thinking")
    decoded = codec.decode(codec.encode(text))
    read = codec.parse(decoded)
    if not same_action(read.action, action):
        raise ConfigError(
            f"an action is read as it was written; {text!r} became {decoded!r} in tokens and was "
            f"read as {read.action or read.error}: use another codec or tokenizer"
        )
    if not decoded.endswith(codec.stop):
        raise ConfigError(
            f"a stop string ends every action; none of {codec.stop} ends {decoded!r}: the engine "
            "would not stop"
        )
