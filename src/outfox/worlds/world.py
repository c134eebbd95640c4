"""What a policy acts in: tasks, what answers the policy, and what a cold start imitates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from outfox.core.errors import ConfigError
from outfox.core.protocols import Codec, EnvironmentFactory, Retriever, TaskSource, Tool
from outfox.core.results import Demonstration, Event
from outfox.core.seeding import rng
from outfox.core.types import Opening, Task
from outfox.worlds.tasks.columns import RowFormat
from outfox.worlds.tasks.formats.auto import ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """Every word of a world, for a tokenizer whose tokens are whole words."""

    words: tuple[str, ...]
    """Words, punctuation marks and numbers; none holds a space."""
    names: tuple[str, ...]
    """Names; may hold spaces, each is to be one token."""
    separator: str
    """What stands between two words in running text: a space, or nothing (Chinese)."""


DrillName = Literal["recall", "copy", "found", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """One item of a gate: after `opening` and `events` the policy's next think block is judged."""

    name: DrillName
    opening: Opening
    events: tuple[Event, ...]
    expected: str
    """The right think block's content, e.g. `Peru currency Peruvian Sol`."""


class DemonstrationSource(Protocol):
    """What a cold start imitates. Pure: the same arguments give the same items."""

    def take(self, step: int, count: int) -> Sequence[Demonstration]: ...
    def drills(self, name: DrillName, count: int, seed: int) -> Sequence[Drill]:
        """Items of a gate; not among what `take` gives, but for the facts to be recalled."""
        ...


class Demonstrator(Protocol):
    """Makes a DemonstrationSource whose text is written by `codec`.

    `readings`: an environment-owned reading follows every draft.
    """

    def __call__(self, codec: Codec, *, readings: bool = False) -> DemonstrationSource: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything that a recipe needs of a world."""

    name: str
    language: str
    train: TaskSource
    held_out: Sequence[Task]
    """On facts that training never asks; every prefix is balanced over kinds."""
    environment: EnvironmentFactory
    retriever: Retriever | None = None
    demonstrations: Demonstrator | None = None
    make_lexicon: Callable[[], Lexicon] | None = None
    """Asked only where a tiny policy is to be built."""
    made_of: str = ""
    """Hash of the user's files that it was made from; a cold start depends on them."""

    @property
    def lexicon(self) -> Lexicon | None:
        """Its words; None where it cannot say."""
        return self.make_lexicon() if self.make_lexicon else None

    def draw(self, count: int, seed: int) -> tuple[Task, ...]:
        """`count` held-out tasks, balanced over `metadata["kind"]`, drawn by seed.

        Raises ConfigError where fewer are held out.
        """
        if count > len(self.held_out):
            raise ConfigError(
                f"{self.name} holds out {len(self.held_out)} questions; {count} were asked for: "
                "lower eval.questions"
            )
        return balanced(self.held_out, seed)[:count]

    def keeping_questions_of(self, other: World, *, key: str) -> World:
        """This world, made by `key`. Raises ConfigError unless it holds out what `other` does."""
        if self.held_out != other.held_out:
            raise ConfigError(
                f"{key} changes what answers a call, not the questions; these settings make "
                "others: set them under world"
            )
        return self


def check_names(source: DemonstrationSource, names: Collection[str], *, key: str) -> None:
    """Raises ConfigError where none of the first demonstrations has one of these names."""
    found = {demonstration.name for demonstration in source.take(0, 64)}
    if names and not found & set(names):
        raise ConfigError(
            f"{key}: of the first 64 demonstrations none is called {' or '.join(names)}; they are "
            f"{', '.join(sorted(found))}: name one of these"
        )


def balanced(tasks: Sequence[Task], seed: int) -> tuple[Task, ...]:
    """All tasks, in seeded order, kinds taking turns until each is used up.

    Within a kind, another wording of what was asked already comes after everything else.
    """
    by_kind: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        by_kind[str(task.metadata.get("kind", ""))].append(task)
    piles: list[list[Task]] = []
    for kind in sorted(by_kind):
        pile = by_kind[kind]
        rng(seed, "balanced", kind).shuffle(pile)
        piles.append(_wordings_last(pile)[::-1])
    drawn: list[Task] = []
    while any(piles):
        drawn += [pile.pop() for pile in piles if pile]
    return tuple(drawn)


def _wordings_last(tasks: Sequence[Task]) -> list[Task]:
    """Stable: the first task on each (entities, gold), then the second on each, and so on."""
    seen: Counter[str] = Counter()
    rounds: list[int] = []
    for task in tasks:
        entities = task.metadata.get("entities")
        subject = f"{entities} {task.reference}" if entities else task.task_id
        rounds.append(seen[subject])
        seen[subject] += 1
    order = sorted(range(len(tasks)), key=rounds.__getitem__)
    return [tasks[i] for i in order]


@dataclass(frozen=True, slots=True, kw_only=True)
class Supplies:
    """What a recipe gives a world besides its settings."""

    tools: tuple[Callable[[], Tool], ...] = ()
    """The user's tools, made anew for each episode."""
    tasks: Path | None = None
    """Rows of the user's own."""
    corpus: Path | None = None
    format: RowFormat = ANY
    """How the rows are written."""
    cache: Path | None = None
    """Folder for what is slow to make and outlives a run."""
