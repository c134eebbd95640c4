"""Writes one episode down as it would look: thoughts, readings, searches, passages, answers.

<think>currency of France ? Franc</think>[unsure]<search>currency of France</search>
<information>...</information><think>currency of France Euro</think><answer>Euro</answer>

A reading follows a draft; a note, which is copied, gets none.
"""

from __future__ import annotations

from collections.abc import Mapping

from outfox.core.errors import ContractError
from outfox.core.protocols import Codec
from outfox.core.results import Event
from outfox.core.types import JSON, Action, Message, ToolCall

SURE, UNSURE = "[sure]", "[unsure]"
_CALL_ID = "call"
_PROBE = "a thought"


class Hand:
    """How a codec writes the pieces of a turn."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        answer = Action(answer="x")
        whole, tail = codec.write(answer, _PROBE), codec.write(answer)
        if not whole.endswith(tail) or whole.count(_PROBE) != 1:
            raise ContractError(
                "a codec for demonstrations writes a thought as it is, before the action; "
                f"this one wrote {whole!r} for the thought {_PROBE!r}"
            )
        before, after = whole.removesuffix(tail).split(_PROBE)
        self._opening = before.rstrip()
        self._lead, self._closing = before[len(self._opening) :], after

    def thought(self, text: str) -> tuple[str, str]:
        """A think block as its opening, which alone may be a decision, and the rest."""
        return self._opening, f"{self._lead}{text}{self._closing}"

    def split(self, text: str, value: str) -> tuple[str, str]:
        """A think block cut before its value, where the cut falls between two tokens."""
        whole = "".join(self.thought(text))
        before, _, after = whole.rpartition(value)
        ids = self._codec.encode(whole).tolist()
        for about, said in ((before, value + after), (before.rstrip(), value + after)):
            if [*self._codec.encode(about).tolist(), *self._codec.encode(said).tolist()] == ids:
                return about, said
        raise ContractError(f"no token of {whole!r} begins with its value {value!r}")

    def call(self, name: str, arguments: Mapping[str, JSON]) -> str:
        call = ToolCall(id=_CALL_ID, name=name, arguments=arguments)
        return self._codec.write(Action(calls=(call,)))

    def said_from(self, name: str, arguments: Mapping[str, JSON]) -> int:
        """Where in the text of a call its first argument begins: behind what decides."""
        first = next(iter(arguments))
        return self.call(name, {**arguments, first: _PROBE}).index(_PROBE)

    def answered_from(self) -> int:
        return self.answer(_PROBE).index(_PROBE)

    def answer(self, text: str) -> str:
        return self._codec.write(Action(answer=text))


class Script:
    """The events of one episode, in the making. Neighbouring pieces alike become one event."""

    def __init__(self, hand: Hand, *, readings: bool, decides: bool = True) -> None:
        """`decides` False: what is decided behind a draft is shown, not trained."""
        self._hand = hand
        self._readings = readings
        self._decides = decides
        self._drafted = False
        self._events: list[Event] = []
        self._reading = ""

    def think(self, text: str, *, sure: bool, opening: bool = True, shown: str = "") -> None:
        """A think block; `opening` False: its first tag is shown, not trained; neither is its last
        word `shown`.

        A reading follows where it is a draft, not where it notes what was just observed.
        """
        start, rest = self._hand.thought(text)
        noted = bool(self._events and self._events[-1].messages)
        self._policy(start, opening and self._trains)
        if shown:
            about, said = self._hand.split(text, shown)
            self._policy(about.removeprefix(start), True)
            self._policy(said, False)
        else:
            self._policy(rest, True)
        self._drafted = not noted
        self._reading = "" if noted else SURE if sure else UNSURE

    def aside(self, text: str, value: str, *, sure: bool | None = None) -> None:
        """A think block of which only the value at its end is trained, not what it is about.

        `sure` None: no reading follows.
        """
        about, said = self._hand.split(text, value)
        self._policy(about, False)
        self._policy(said, True)
        self._reading = "" if sure is None else SURE if sure else UNSURE

    def topic(self, text: str, value: str, *, sure: bool, trained: bool = True) -> None:
        """The other way round: what a think block is about is trained, not the value."""
        opening, rest = self._hand.thought(text)
        if trained:
            about, said = self._hand.split(text, value)
            self._policy(opening, False)
            self._policy(about.removeprefix(opening), True)
            self._policy(said, False)
        else:  # In one piece: the pieces of a split text lack the space between them.
            self._policy(opening + rest, False)
        self._reading = SURE if sure else UNSURE

    def search(self, query: str, *, decided: bool = True, trained: bool = True) -> None:
        """`decided` False: what is searched for is trained, not that it is searched."""
        self.call("search", {"query": query}, decided=decided, trained=trained)

    def call(
        self,
        name: str,
        arguments: Mapping[str, JSON],
        *,
        decided: bool = True,
        trained: bool = True,
    ) -> None:
        """A call of any tool that the codec can write."""
        text = self._hand.call(name, arguments)
        cut = 0 if decided and self._trains else self._hand.said_from(name, arguments)
        if cut:
            self._policy(text[:cut], False)
        self._policy(text[cut:], trained)

    def answer(self, text: str, *, decided: bool = True) -> None:
        """`decided` False: what is answered is trained, not that it is answered."""
        whole = self._hand.answer(text)
        cut = 0 if decided and self._trains else self._hand.answered_from()
        if cut:
            self._policy(whole[:cut], False)
        self._policy(whole[cut:], True)

    @property
    def _trains(self) -> bool:
        """Is the tag that comes next trained, as far as decisions go?"""
        return self._decides or not self._drafted

    def observe(self, content: str) -> None:
        message = Message(role="tool", content=content, tool_call_id=_CALL_ID)
        self._events.append(Event(messages=(message,), owner="environment", trained=False))
        self._drafted = False

    @property
    def events(self) -> tuple[Event, ...]:
        """All events; a reading stands only where something follows it."""
        return tuple(self._events)

    def _policy(self, text: str, trained: bool) -> None:
        if self._reading and self._readings:
            self._events.append(Event(text=self._reading, owner="environment", trained=False))
        self._reading = ""
        last = self._events[-1] if self._events else None
        if last and last.owner == "policy" and last.trained == trained and not last.messages:
            self._events[-1] = Event(text=last.text + text, trained=trained)
        else:
            self._events.append(Event(text=text, trained=trained))
