"""What a cold start imitates in a world of rows: recall, reading drills, whole episodes.

    closed_book  question ─▶ draft, cut off there: the answer where the row is known, else a guess
    reading      question, the row's calls ─▶ what they return, with another row's answer in place
                 of its own ─▶ note, answer; no decision is trained
    episode      question ─▶ draft ─coin─▶ the row's calls ─▶ note, answer; or the draft at once

The tools are really called, once per row. As in the world when-to-search the coin is fair, so that
which way pays is left to the reward; and the answer of a row that is held out is shown nowhere,
unless the row is known. Item i of the run is a pure function of the seed and i.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

from outfox.core.errors import DataError
from outfox.core.protocols import Codec, EnvironmentFactory
from outfox.core.results import Demonstration
from outfox.core.seeding import rng
from outfox.core.types import CALL_FAILED, Message, Opening, ToolCall, ToolSpec
from outfox.worlds.rows.shown import Shown
from outfox.worlds.when_to_search.script import Hand, Script
from outfox.worlds.world import Drill, DrillName

_FEW = 4
"""Fewer answers than these make no pool of guesses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """What the cold start is made of. The first three shares are relative."""

    closed_book: float = 0.2
    """Share of facts said without a call."""
    reading: float = 0.5
    """Share of drills in reading what a call brought."""
    episode: float = 0.3
    """Share of whole episodes."""
    guesses: float = 0.3
    """Of the closed-book items: share about rows that are not known."""
    absent: float = 0.2
    """Of the drills: share whose passages do not hold the answer."""
    noise: float = 0.03
    """Share of readings that say the opposite."""
    call: float = 0.5
    """The coin: chance to call where a demonstration decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a policy says where nothing was found, and what a tool does."""

    unknown: str
    nothing: str


class RowDemonstrations:
    """A DemonstrationSource over rows; its text is written by `codec`.

    Raises DataError, when an item is taken, for a row that says neither `known` nor `calls`, and
    for one whose calls fail.
    """

    def __init__(
        self,
        train: Sequence[Shown],
        held_out: Sequence[Shown],
        codec: Codec,
        environment: EnvironmentFactory,
        *,
        tools: Sequence[ToolSpec],
        words: Words,
        mix: Mix,
        seed: int,
        readings: bool = False,
    ) -> None:
        self._all = (*train, *held_out)
        self._hidden = frozenset(row.task.task_id for row in held_out if not row.known)
        self._hand = Hand(codec)
        self._environment = environment
        self._tools = tuple(tools)
        self._words = words
        self._mix = mix
        self._seed = seed
        self._readings = readings
        self._known = [row for row in self._all if row.known]
        self._guessed = [row for row in self._all if not row.known]
        self._read = [row for row in self._all if row.calls]
        self._pools = _pools(self._all)

    def take(self, step: int, count: int) -> Sequence[Demonstration]:
        self._check()
        return tuple(self._item(step * count + offset) for offset in range(count))

    def drills(self, name: DrillName, count: int, seed: int) -> Sequence[Drill]:
        rows = self._known if name == "recall" else self._read
        if name in ("copy", "found"):
            rows = [row for row in rows if row.answerable]
        if not rows:
            return ()
        draws = (rng(self._seed, "drill", name, seed, number) for number in range(count))
        return tuple(self._drill(name, draw.choice(rows), draw) for draw in draws)

    # -- items -------------------------------------------------------------------------------------
    def _item(self, index: int) -> Demonstration:
        draw, mix = rng(self._seed, "demonstration", index), self._mix
        shares = {
            "closed_book": mix.closed_book if self._known else mix.closed_book * mix.guesses,
            "reading": mix.reading if self._read else 0.0,
            "episode": mix.episode,
        }
        (name,) = draw.choices(list(shares), list(shares.values()))
        play = {
            "closed_book": self._closed_book,
            "reading": self._reading,
            "episode": self._episode,
        }
        row, script = play[name](draw)
        return Demonstration(name=name, opening=self._opening(row), events=script.events)

    def _closed_book(self, draw: random.Random) -> tuple[Shown, Script]:
        guess = not self._known or (self._guessed and draw.random() < self._mix.guesses)
        row, script = draw.choice(self._guessed if guess else self._known), self._script()
        self._draft(script, row, draw)
        return row, script

    def _reading(self, draw: random.Random) -> tuple[Shown, Script]:
        row, script = draw.choice(self._read), self._script()
        self._draft(script, row, draw, trained=False)
        script.answer(self._calls(script, row, draw, made_up=True, decided=False), decided=False)
        return row, script

    def _episode(self, draw: random.Random) -> tuple[Shown, Script]:
        row, script = draw.choice(self._all), self._script()
        drafted = self._draft(script, row, draw)
        if not row.calls or not self._coin(draw):
            script.answer(drafted)
            return row, script
        hidden = row.task.task_id in self._hidden
        script.answer(self._calls(script, row, draw, made_up=hidden, decided=True))
        return row, script

    def _calls(
        self, script: Script, row: Shown, draw: random.Random, *, made_up: bool, decided: bool
    ) -> str:
        """The row's calls, each with what it returns and a note; the last note is the answer."""
        texts, answer = list(self._found[row.task.task_id]), row.answer
        if made_up:
            texts[-1], answer = self._made_up(row, texts[-1], draw)
        for number, (call, text) in enumerate(zip(row.calls, texts, strict=True)):
            if number and decided and not self._coin(draw):
                return self._words.unknown
            script.call(call.name, call.arguments, decided=decided)
            script.observe(text)
            after = row.calls[number + 1 :]
            script.think(_argument(after[0]) if after else answer, sure=self._is_sure(True, draw))
        return answer

    def _made_up(self, row: Shown, text: str, draw: random.Random) -> tuple[str, str]:
        """What a call returned with another answer in it, or none; and that answer."""
        if not row.answerable:
            return text, self._words.unknown
        if draw.random() < self._mix.absent or not _standing(row.answer).search(text):
            return self._without(row, text), self._words.unknown
        other = draw.choice(self._pool(row))
        return _standing(row.answer).sub(lambda _: other, text), other

    def _without(self, row: Shown, text: str) -> str:
        """Only the lines that do not hold the answer."""
        left = [line for line in text.splitlines() if not _standing(row.answer).search(line)]
        return "\n".join(left) or self._empty(row)

    def _empty(self, row: Shown) -> str:
        """What the row's last tool says where it finds nothing, as far as a row shows it."""
        for other in self._read:
            if not other.answerable and other.calls[-1].name == row.calls[-1].name:
                return self._found[other.task.task_id][-1]
        return self._words.nothing

    # -- drills ------------------------------------------------------------------------------------
    def _drill(self, name: DrillName, row: Shown, draw: random.Random) -> Drill:
        script, expected = self._script(), row.answer
        if name != "recall":
            *texts, last = self._found[row.task.task_id]
            if name == "missing":
                last, expected = self._without(row, last), self._words.unknown
            elif _standing(row.answer).search(last):
                expected = draw.choice(self._pool(row))
                last = _standing(row.answer).sub(lambda _: expected, last)
            self._draft(script, row, draw)
            for number, (call, text) in enumerate(zip(row.calls, (*texts, last), strict=True)):
                if number:
                    script.think(_argument(call), sure=True)
                script.call(call.name, call.arguments)
                script.observe(text)
        opening = self._opening(row)
        return Drill(name=name, opening=opening, events=script.events, expected=expected)

    # -- pieces ------------------------------------------------------------------------------------
    def _script(self) -> Script:
        return Script(self._hand, readings=self._readings)

    def _opening(self, row: Shown) -> Opening:
        return Opening(messages=row.task.prompt, tools=self._tools)

    def _draft(
        self, script: Script, row: Shown, draw: random.Random, *, trained: bool = True
    ) -> str:
        value = row.answer if row.known else draw.choice(self._pool(row))
        sure = self._is_sure(row.known, draw)
        if trained:
            script.think(value, sure=sure)
        else:
            script.topic(value, value, sure=sure, trained=False)
        return value

    def _is_sure(self, truly: bool, draw: random.Random) -> bool:
        return truly != (draw.random() < self._mix.noise)

    def _coin(self, draw: random.Random) -> bool:
        return draw.random() < self._mix.call

    def _pool(self, row: Shown) -> Sequence[str]:
        """Answers of the kind that the row has: of rows that call the same tool last."""
        own = self._pools.get(_kind(row), ())
        return own if len(own) >= _FEW else self._pools[""]

    def _check(self) -> None:
        for row in self._all:
            if not row.readable:
                raise DataError(
                    f"{row.where}: a cold start shows how a row is answered; the gold "
                    f"{row.task.reference!r:.60} is none that can be written as an answer: set "
                    "cold_start.steps=0 and model.path, or name its column in tasks.format"
                )
            if not row.known and row.task.task_id not in self._found:
                raise DataError(
                    f"{row.where}: a cold start shows how a row is answered; this one says neither "
                    'how nor that it is known: give it "calls": [{tool: argument}] or '
                    '"known": true, or set cold_start.steps=0 and model.path'
                )

    @cached_property
    def _found(self) -> Mapping[str, tuple[str, ...]]:
        """Task id to what its calls return. Asked in a thread: this one may have a loop running."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, self._ask()).result()

    async def _ask(self) -> dict[str, tuple[str, ...]]:
        texts = await asyncio.gather(*map(self._called, self._read))
        return dict(zip((row.task.task_id for row in self._read), texts, strict=True))

    async def _called(self, row: Shown) -> tuple[str, ...]:
        environment = self._environment(row.task, self._seed)
        await environment.reset()
        texts: list[str] = []
        for call in row.calls:
            asked = Message(role="assistant", content="", tool_calls=(call,))
            (result,) = (await environment.step(asked)).results
            if result.status in (*CALL_FAILED, "refused"):
                raise DataError(
                    f"{row.where}: its call {call.name}({_argument(call)!r}) is shown to the "
                    f"policy, so it must work; {result.error}: mend the tool, or the row's 'calls'"
                )
            texts.append(result.content)
        await environment.close()
        return tuple(texts)


def _argument(call: ToolCall) -> str:
    return " ".join(str(value) for value in call.arguments.values())


def _kind(row: Shown) -> str:
    return row.calls[-1].name if row.calls else ""


def _pools(rows: Sequence[Shown]) -> dict[str, tuple[str, ...]]:
    """Answers by kind, and all of them under the empty name, in order."""
    answerable = [row for row in rows if row.answerable]
    kinds = {"", *map(_kind, answerable)}
    return {
        kind: tuple(sorted({row.answer for row in answerable if kind in ("", _kind(row))}))
        for kind in sorted(kinds)
    }


def _standing(answer: str) -> re.Pattern[str]:
    """The answer by itself, not inside a longer word or number."""
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(answer)}(?![A-Za-z0-9])")
