"""What a cold start imitates where questions name the passages that answer them: scripted searches.

    question ─search─▶ passages ─all gold? no─▶ search for a title just read ─▶ … ─▶ answer
    <think>I look it up.</think><search>Who directed Jaws' sequel?</search>
    <think>Next: Jaws 2.</think><search>Jaws 2</search>
    <think>Jaws 2 says it.</think><answer>Jeannot Szwarc</answer>

The tool is really called, and the script does nothing that a reader could not: it searches for the
question, or for a title that stands in the question or in a gold passage that came back, and
answers what stands in one. A row that cannot be answered so is left out. Rows that are held out are
never shown; nothing is drilled, and no coin is tossed: a model that can read learns the format.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from outfox.core.errors import ContractError, DataError
from outfox.core.protocols import Codec
from outfox.core.results import Demonstration
from outfox.core.types import JSON, Document, Opening, Task, ToolSpec
from outfox.worlds.rows.shown import gold_of, question_of
from outfox.worlds.tools.search import SearchTool
from outfox.worlds.when_to_search.script import Hand, Script
from outfox.worlds.world import Drill, DrillName, balanced

_MOST = 3
"""Searches in one demonstration."""
_BRACKETS = re.compile(r"\s*\([^()]*\)$")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """What is thought. `{}` is a title."""

    first: str
    next: str
    found: str


_PHRASES = {
    "en": Phrases(first="I look it up.", next="Next: {}.", found="{} says it."),
    "zh": Phrases(first="我查一下。", next="再查：{}。", found="{}里说到了。"),
}


class SearchDemonstrations:
    """A DemonstrationSource over training rows; kinds take turns.

    `titles`: of every passage, by id. Raises DataError, when an item is taken, where no row can be
    answered by its passages.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        codec: Codec,
        search: SearchTool,
        titles: Mapping[str, str],
        *,
        tools: Sequence[ToolSpec],
        language: str,
        seed: int,
        readings: bool = False,
    ) -> None:
        self._left = list(balanced(tasks, seed))[::-1]
        self._hand = Hand(codec)
        self._search = search
        self._titles = titles
        self._tools = tuple(tools)
        self._phrases = _PHRASES.get(language, _PHRASES["en"])
        self._readings = readings
        self._made: list[Demonstration] = []

    def take(self, step: int, count: int) -> Sequence[Demonstration]:
        return tuple(self._item(step * count + offset) for offset in range(count))

    def drills(self, name: DrillName, count: int, seed: int) -> Sequence[Drill]:
        return ()

    def _item(self, index: int) -> Demonstration:
        """Number `index` of the rows that can be shown; after the last of them the first again."""
        while len(self._made) <= index and self._left:
            made = self._played(self._left.pop())
            self._made += [made] if made else []
        if not self._made:
            raise DataError(
                "a scripted search answers no row: none has an answer that stands in a passage "
                "which a search for its question finds; name the passages in 'gold_evidence', or "
                "set cold_start.steps=0 and a model.path that can write the tags"
            )
        return self._made[index % len(self._made)]

    def _played(self, task: Task) -> Demonstration | None:
        script = Script(self._hand, readings=self._readings)
        try:
            shown = self._play(script, task)
        except ContractError:  # The codec cannot write it: a question or an answer with tags.
            return None
        opening = Opening(messages=task.prompt, tools=self._tools)
        return (
            Demonstration(name="episode", opening=opening, events=script.events) if shown else None
        )

    def _play(self, script: Script, task: Task) -> bool:
        """Write the episode down; False where the answer is not found."""
        seen: dict[str, Document] = {}
        query, thought = question_of(task), self._phrases.first
        for number in range(_MOST):
            documents = self._search.find(query)
            script.think(thought, sure=False)
            script.search(query)
            script.observe(self._search.show(documents))
            seen |= {document.id: document for document in documents}
            following = self._following(task, seen) if number + 1 < _MOST else None
            if following is None:
                break
            query, thought = following, self._phrases.next.format(following)
        said = _said(task, seen)
        if said is not None:
            document, answer = said
            script.think(self._phrases.found.format(document.title or answer), sure=True)
            script.answer(answer)
        return said is not None

    def _following(self, task: Task, seen: Mapping[str, Document]) -> str | None:
        """A title that brings a gold passage that is missing, and that a reader knows by now."""
        gold = gold_of(task)
        read = " ".join(_text(seen[name]) for name in gold if name in seen)
        for name in gold:
            title = _BRACKETS.sub("", self._titles.get(name, ""))
            if name in seen or not _holds(f"{question_of(task)} {read}", title):
                continue
            if any(document.id == name for document in self._search.find(title)):
                return title
        return None


def _said(task: Task, seen: Mapping[str, Document]) -> tuple[Document, str] | None:
    """A passage that came back, a gold one where gold ones are named, and the answer it states.

    Yes and no are answered where all gold passages came back.
    """
    gold, answers = gold_of(task), _answers(task.reference)
    read = [seen[name] for name in gold if name in seen] if gold else list(seen.values())
    if gold and len(read) == len(gold) and [a.lower() for a in answers] in (["yes"], ["no"]):
        return read[-1], answers[0].lower()
    found = ((document, answer) for answer in answers for document in read)
    return next(((d, a) for d, a in found if _holds(d.text, a)), None)


def _answers(reference: JSON) -> list[str]:
    given = cast("Mapping[str, Any]", reference if isinstance(reference, Mapping) else {})
    given = given or {"answer": reference}
    names = [given.get("answer"), *given.get("aliases", ())]
    return [name for name in names if isinstance(name, str)]


def _text(document: Document) -> str:
    return f"{document.title} {document.text}"


def _holds(text: str, phrase: str) -> bool:
    """Does the text hold these words, one after the other? False for a phrase without words."""
    words = _words(phrase)
    return bool(words.strip()) and words in _words(text)


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(unicodedata.normalize('NFKC', text).lower()))} "
