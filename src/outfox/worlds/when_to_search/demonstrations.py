"""What the cold start imitates: closed-book items, reading drills, whole episodes.

    closed_book  question ─▶ draft, other known facts in passing: no decision is ever shown
    reading      question, search, made-up passages ─▶ notes; what is drafted or asked about, but
                 no drafted value and no decision
    copying      names in a row ─▶ the same names
    episode      question ─▶ draft ─coin─▶ search, note | next hop or answer

The coin ignores whether a fact is known, so nothing about the decision is taught; which way pays is
for the reward to say. Item i of the run is a pure function of the seed and i.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from outfox.core.protocols import Codec
from outfox.core.results import Demonstration
from outfox.core.seeding import rng
from outfox.core.types import Opening
from outfox.worlds.tasks.rows import epoch_order
from outfox.worlds.when_to_search.beliefs import Hop, draft, relations
from outfox.worlds.when_to_search.facts import Fact
from outfox.worlds.when_to_search.fiction import Block, Fiction
from outfox.worlds.when_to_search.kind_tasks import spread
from outfox.worlds.when_to_search.lookups import Lookups, SearchView
from outfox.worlds.when_to_search.questions import (
    DISPUTED,
    Question,
    ask,
    dated_texts,
    plain_texts,
)
from outfox.worlds.when_to_search.script import Hand, Script
from outfox.worlds.when_to_search.setting import Setting
from outfox.worlds.world import Drill, DrillName

_BLOCK = 100
_RECALLED_BESIDE = 2
"""Known facts behind each closed-book item that no question asks for there."""
_DISPUTES = 0.12
"""Of the reading drills, where the world has disputes: share that is about one for certain."""
_WRONG = 0.5
"""Of the known facts beside, where drafts are checked: share with any value of their class."""
_RECALLED = ("known", "two_known_known", "changed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """What the cold start is made of. The four shares are relative."""

    closed_book: float = 0.25
    """Share of facts said without a call."""
    reading: float = 0.4
    """Share of drills in reading what a call brought."""
    episode: float = 0.3
    """Share of whole episodes."""
    copying: float = 0.05
    """Share of drills in writing down the same names."""
    guesses: float = 0.2
    """Of the closed-book items: share about unknown facts, whose draft is any value."""
    absent: float = 0.35
    """Of the reading drills: share of lookups whose passages do not hold the value."""
    named: float = 0.25
    """Of the reading drills: share that trains what is drafted and searched for, too; more of it
    leaves less weight for the values, which are harder to learn."""
    decided: float = 0.15
    """Of the episodes: share that trains what is decided behind a draft. Trained in all of them, an
    even coin teaches that the reading does not matter, which reinforcement must then undo."""
    noise: float = 0.03
    """Share of readings that say the opposite."""
    checks: bool = False
    """A draft ends in the policy's own word on whether it is right: in place of a reading. Learned
    from training questions, and from known facts beside values of others."""
    search: float = 0.5
    """The coin: chance to search where a demonstration decides."""


class Demonstrations:
    """A DemonstrationSource over a setting; its text is written by `codec`."""

    def __init__(
        self,
        setting: Setting,
        codec: Codec,
        search: SearchView,
        *,
        top_k: int,
        system: str,
        mix: Mix,
        readings: bool,
        failures: float = 0.0,
    ) -> None:
        self._setting = setting
        self._facts = setting.facts
        self._phrases = setting.phrases
        self._hand = Hand(codec)
        self._search = search
        self._system = system
        self._seed = setting.seed
        self._mix = mix
        self._readings = readings
        self._lookups = Lookups(setting, search, top_k=top_k, coin=mix.search, failures=failures)
        self._disputed = [q for q in setting.questions if q.kind == DISPUTED]
        self._fiction = Fiction(setting.facts)
        shares = {
            "recall": mix.closed_book * (1 - mix.guesses),
            "guess": mix.closed_book * mix.guesses,
            "reading": mix.reading,
            "episode": mix.episode,
            "copying": mix.copying,
        }
        self._pattern = spread({k: share for k, share in shares.items() if share > 0}, _BLOCK)
        self._taught = [fact for fact in setting.facts.all if fact.taught is not None]
        self._guessed = _chains([q for q in setting.questions if q.kind not in _RECALLED])
        self._read = _chains(setting.questions)
        self._chains: dict[tuple[str, str], list[Question]] = defaultdict(list)
        asked: dict[str, list[Question]] = defaultdict(list)
        self._single = [q for q in setting.questions if len(q.facts) == 1]
        for question in setting.questions:
            if not question.held_out:
                asked[question.kind].append(question)
                if question.kind == "two_known_known":
                    self._chains[question.facts[-1].key].append(question)
        self._asked = [_chains(asked[kind]) for kind in sorted(asked)]

    def take(self, step: int, count: int) -> Sequence[Demonstration]:
        return tuple(self._item(step * count + offset) for offset in range(count))

    def drills(self, name: DrillName, count: int, seed: int) -> Sequence[Drill]:
        make = {
            "recall": self._recall_drill,
            "copy": self._copy_drill,
            "found": self._copy_drill,
            "missing": self._missing_drill,
        }[name]
        return tuple(make(name, rng(self._seed, "drill", name, seed, i)) for i in range(count))

    def _item(self, index: int) -> Demonstration:
        what, number = self._turn(index)
        draw = rng(self._seed, "demonstration", what, number)
        if what == "recall":
            question, script = self._recall(number, draw)
        else:
            play = {
                "guess": self._guess,
                "reading": self._reading,
                "episode": self._episode,
                "copying": self._copying,
            }
            question, script = play[what](draw)
        name = "closed_book" if what in ("recall", "guess") else what
        return Demonstration(name=name, opening=self._opening(question), events=script.events)

    def _copying(self, draw: random.Random) -> tuple[str, Script]:
        """A few names, to be said again. No question looks like this."""
        names = draw.choices(self._setting.lexicon.names, k=draw.randint(6, 12))
        text, script = (self._phrases.separator or " ").join(names), self._script()
        script.answer(text)
        return text, script

    def _turn(self, index: int) -> tuple[str, int]:
        """What item `index` is, and how many of its sort came before."""
        block, place = divmod(index, _BLOCK)
        what = self._pattern[place]
        return what, block * self._pattern.count(what) + self._pattern[:place].count(what)

    # -- closed book -------------------------------------------------------------------------------
    def _guess(self, draw: random.Random) -> tuple[str, Script]:
        """Drafts for a question that memory alone does not answer."""
        script, question = self._script(), draw.choice(draw.choice(self._guessed))
        told = not question.held_out
        self._drafts(script, question.facts[0].entity, relations(question), draw, told=told)
        return question.text, script

    def _recall(self, number: int, draw: random.Random) -> tuple[str, Script]:
        """Taught facts take turns, so that each is seen equally often."""
        script = self._script()
        order = epoch_order(len(self._taught), self._seed, number // len(self._taught))
        fact = self._taught[order[number % len(order)]]
        chains = self._chains.get(fact.key)
        if chains and draw.random() < 0.3:
            question = draw.choice(chains)
            text, entity, chain = question.text, question.facts[0].entity, relations(question)
        else:
            text, entity, chain = self._wording(fact, draw), fact.entity, (fact.relation,)
        self._drafts(script, entity, chain, draw)
        for other in draw.sample(self._taught, _RECALLED_BESIDE):
            self._recall_beside(script, other, draw)
        return text, script

    def _recall_beside(self, script: Script, fact: Fact, draw: random.Random) -> None:
        """A known fact must come to mind in any place, as in the second hop of a question."""
        hop, value = Hop(entity=fact.entity, relation=fact.relation), fact.taught or ""
        sure = draw.random() >= self._mix.noise
        if self._mix.checks and draw.random() < _WRONG:
            other = draw.choice(self._facts.classes[fact.relation])
            word = self._phrases.check(other == value)
            script.aside(hop.draft(self._phrases, other, other == value), word, sure=sure)
            return
        script.aside(self._said(hop, value, True), value, sure=sure)

    def _wording(self, fact: Fact, draw: random.Random) -> str:
        """A question for a taught fact; for a changed one, with or without the year."""
        if fact.role == "changed" and draw.random() < 0.5:
            return draw.choice(dated_texts(self._phrases, fact))
        return draw.choice(plain_texts(self._phrases, fact.relation, fact.entity))

    def _drafts(
        self,
        script: Script,
        entity: str,
        chain: Sequence[str],
        draw: random.Random,
        *,
        told: bool = True,
    ) -> None:
        for place, relation in enumerate(chain):
            hop = Hop(entity=entity, relation=relation)
            # Going on to the next hop is a decision too: its tag is shown, not trained.
            entity = self._draft(script, hop, draw, opening=place == 0, told=told)

    # -- reading -----------------------------------------------------------------------------------
    def _reading(self, draw: random.Random) -> tuple[str, Script]:
        """A question of any split over made-up passages, whose values are not true."""
        script, question = self._script(), draw.choice(draw.choice(self._read))
        if self._disputed and draw.random() < _DISPUTES:
            question = draw.choice(self._disputed)
        entity, named = question.facts[0].entity, draw.random() < self._mix.named
        for relation in relations(question):
            hop = Hop(entity=entity, relation=relation)
            belief = draft(self._facts, hop, draw)
            text = self._said(hop, belief.value, belief.known)
            sure = belief.known != (draw.random() < self._mix.noise)
            script.topic(text, belief.value, sure=sure, trained=named)
            value: str | None = None
            for asked, cue, block in self._made_up(question, hop, draw):
                # Whom a passage names is to be asked: that is read, too.
                shown = named or asked != hop
                script.search(asked.query(self._phrases, cue), decided=False, trained=shown)
                value = block.value
                content = self._search.show(block.documents)
                self._lookups.note(script, asked, content, value, cue)
                if value is None or hop.relation != relations(question)[-1] or cue != question.cue:
                    self._note_asides(script, block)
            if value is None:
                break
            entity = value
        else:
            script.answer(entity, decided=False)
        return question.text, script

    def _made_up(
        self, question: Question, hop: Hop, draw: random.Random
    ) -> list[tuple[Hop, str, Block]]:
        """The searches for one hop: who is asked, with which cue, and what comes back."""
        absent = draw.random() < self._mix.absent
        if question.kind == "conflict" and not absent:
            first = self._fiction.counted(hop, draw, latest=False)
            latest = self._fiction.counted(hop, draw, latest=True)
            return [(hop, "", first), (hop, question.cue, latest)]
        if question.kind == DISPUTED and not absent:
            return [(asked, "", block) for asked, block in self._fiction.disputed(hop, draw)]
        if question.kind == "changed":
            return [(hop, question.cue, self._fiction.changed(hop, draw, absent=absent))]
        return [(hop, "", self._fiction.plain(hop, draw, absent=absent))]

    # -- episodes ----------------------------------------------------------------------------------
    def _episode(self, draw: random.Random) -> tuple[str, Script]:
        """A training question in the real environment, all decisions by the coin."""
        script = self._script(decides=draw.random() < self._mix.decided)
        question = draw.choice(draw.choice(draw.choice(self._asked)))
        entity = question.facts[0].entity
        for relation in relations(question):
            hop = Hop(entity=entity, relation=relation)
            value: str | None = self._draft(script, hop, draw)
            if self._lookups.coin(draw):
                value = self._lookups.look_up(script, question, hop, draw)
            if value is None:
                script.answer(self._phrases.unknown)
                return question.text, script
            entity = value
        script.answer(entity)
        return question.text, script

    # -- pieces ------------------------------------------------------------------------------------
    def _script(self, *, decides: bool = True) -> Script:
        return Script(self._hand, readings=self._readings, decides=decides)

    def _opening(self, question: str) -> Opening:
        return Opening(messages=ask(question, self._system), tools=(self._search.spec,))

    def _draft(
        self,
        script: Script,
        hop: Hop,
        draw: random.Random,
        *,
        opening: bool = True,
        told: bool = True,
    ) -> str:
        """`told` False: whether the draft is right is shown, not trained."""
        belief = draft(self._facts, hop, draw)
        sure = belief.known != (draw.random() < self._mix.noise)
        text = self._said(hop, belief.value, belief.known)
        shown = "" if told or not self._mix.checks else self._phrases.check(belief.known)
        script.think(text, sure=sure, opening=opening, shown=shown)
        return belief.value

    def _said(self, hop: Hop, value: str, right: bool) -> str:
        return hop.draft(self._phrases, value, right if self._mix.checks else None)

    def _note_asides(self, script: Script, block: Block) -> None:
        """Notes on what was not asked: a drill's way to read two passages thoroughly."""
        for hop, value in block.asides:
            said = self._phrases.missing if value is None else value
            script.aside(hop.aside(self._phrases, said), said)

    # -- drills ------------------------------------------------------------------------------------
    def _recall_drill(self, name: DrillName, draw: random.Random) -> Drill:
        """Any taught fact by itself."""
        fact = draw.choice(self._taught)
        text, hop = self._wording(fact, draw), Hop(entity=fact.entity, relation=fact.relation)
        return self._drill(name, text, self._script(), self._said(hop, fact.taught or "", True))

    def _copy_drill(self, name: DrillName, draw: random.Random) -> Drill:
        return self._read_drill(name, draw, absent=False)

    def _missing_drill(self, name: DrillName, draw: random.Random) -> Drill:
        return self._read_drill(name, draw, absent=True)

    def _read_drill(self, name: DrillName, draw: random.Random, *, absent: bool) -> Drill:
        script, question = self._script(), draw.choice(self._single)
        fact = question.facts[0]
        hop = Hop(entity=fact.entity, relation=fact.relation)
        self._draft(script, hop, draw)
        if question.kind == "changed":
            block = self._fiction.changed(hop, draw, absent=absent)
        elif question.kind == "conflict" and not absent:
            block = self._fiction.counted(hop, draw, latest=True)
        else:
            block = self._fiction.plain(hop, draw, absent=absent)
        script.search(hop.query(self._phrases, question.cue))
        script.observe(self._search.show(block.documents))
        said = self._phrases.missing if block.value is None else block.value
        note = hop.note(self._phrases, said, question.cue)
        return self._drill(name, question.text, script, note)

    def _drill(self, name: DrillName, question: str, script: Script, expected: str) -> Drill:
        return Drill(
            name=name,
            opening=self._opening(question),
            events=script.events,
            expected=expected,
        )


def _chains(questions: Sequence[Question]) -> list[list[Question]]:
    """Questions by the relations they ask for, so that rare ones are drawn as often as common ones:
    few ask for the population of a capital, and it is not that of the country."""
    found: dict[tuple[str, ...], list[Question]] = defaultdict(list)
    for question in questions:
        found[relations(question)].append(question)
    return [found[chain] for chain in sorted(found)]
