"""Questions of every kind and split, with labels that rewards and evaluation read.

One hop: `known`, `unknown`, `conflict`, `changed`, `unanswerable`, and in some worlds `disputed`.
Two hops, by whether the first and the second are known: `two_known_known`, `two_known_unknown`, ...
A held-out question's last fact is held out; a training question touches no held-out fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from outfox.core.types import JSON, Message, Task
from outfox.worlds.when_to_search.facts import YEAR, Claims, Fact, Facts, is_quantity
from outfox.worlds.when_to_search.passages import Corpus, query, query_of
from outfox.worlds.when_to_search.phrases import PHRASES, Phrases

KINDS = (
    "known",
    "unknown",
    "two_known_known",
    "two_known_unknown",
    "two_unknown_known",
    "two_unknown_unknown",
    "conflict",
    "changed",
    "unanswerable",
)
DISPUTED = "disputed"
"""A kind that only a world with disputed facts has."""
_HOPS = {"conflict": 2, DISPUTED: 3}
_MIN_CALLS = {"changed": 1, DISPUTED: 3}
"""Of kinds that need others than one search per fact, or per unknown fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One wording of one question. `facts` are its hops, in order."""

    kind: str
    facts: tuple[Fact, ...]
    text: str
    wording: int
    held_out: bool
    cue: str = ""
    """The word that its canonical query adds: the cue of a conflict, the year of a change."""

    @property
    def id(self) -> str:
        hops = "+".join(f"{fact.entity}/{fact.relation}" for fact in self.facts)
        return f"{self.kind}:{hops}:{self.wording}"


def make_questions(facts: Facts) -> Iterator[Question]:
    """All questions, both splits."""
    phrases = PHRASES[facts.language]
    for fact in facts.all:
        if fact.role == "plain":
            kind = "known" if fact.known else "unknown"
            texts = plain_texts(phrases, fact.relation, fact.entity)
            yield from _wordings(kind, (fact,), texts, fact.held_out)
            yield from _two_hops(facts, phrases, fact)
        elif fact.role == "removed":
            texts = plain_texts(phrases, fact.relation, fact.entity)
            yield from _wordings("unanswerable", (fact,), texts, fact.held_out)
        elif fact.role == "conflict":
            texts = [phrases.join(template, e=fact.entity) for template in phrases.latest]
            yield from _wordings("conflict", (fact,), texts, fact.held_out, phrases.cue)
        elif fact.role == "disputed":
            texts = plain_texts(phrases, fact.relation, fact.entity)
            yield from _wordings(DISPUTED, (fact,), texts, fact.held_out)
        else:
            yield from _wordings(
                "changed", (fact,), dated_texts(phrases, fact), fact.held_out, YEAR
            )


def _two_hops(facts: Facts, phrases: Phrases, first: Fact) -> Iterator[Question]:
    """Chains that begin with `first`: a city's country, or a country's capital."""
    if first.relation not in phrases.nested:
        return
    entity = phrases.join(phrases.nested[first.relation], e=first.entity)
    for relation in phrases.questions:
        second = facts.at.get((first.value, relation))
        if second is None or second.role != "plain" or second.value in (first.entity, first.value):
            continue
        if relation == "country" or (first.held_out and not second.held_out):
            continue
        knows = ["known" if fact.known else "unknown" for fact in (first, second)]
        texts = plain_texts(phrases, relation, entity)
        yield from _wordings(f"two_{'_'.join(knows)}", (first, second), texts, second.held_out)


def plain_texts(phrases: Phrases, relation: str, entity: str) -> list[str]:
    return [phrases.join(template, e=entity) for template in phrases.questions[relation]]


def dated_texts(phrases: Phrases, fact: Fact) -> list[str]:
    """Every wording, with the year before and after it."""
    texts: list[str] = []
    for plain in plain_texts(phrases, fact.relation, fact.entity):
        before, after = phrases.dated
        texts.append(phrases.join(before, y=YEAR, q=plain[0].lower() + plain[1:]))
        bare = plain.removesuffix(phrases.stop).rstrip()
        texts.append(phrases.join(after, y=YEAR, q=bare))
    return texts


def _wordings(
    kind: str, facts: tuple[Fact, ...], texts: Sequence[str], held_out: bool, cue: str = ""
) -> Iterator[Question]:
    for wording, text in enumerate(texts):
        yield Question(
            kind=kind, facts=facts, text=text, wording=wording, held_out=held_out, cue=cue
        )


def is_sound(
    question: Question, corpus: Corpus, phrases: Phrases, found: Callable[[str], Sequence[str]]
) -> bool:
    """Does the corpus treat the question as its kind promises? `found`: query -> ids returned.

    Conflict: the canonical query shows the earlier passage only, with the cue the later only.
    Changed: the query with the year shows the new value. Unanswerable: something about the entity.
    Disputed: see `_is_in_turn`.
    """
    fact = question.facts[-1]
    plain = found(query(phrases, fact))
    if fact.claims is not None:
        return _is_in_turn(question, fact.claims, corpus, phrases, found)
    if question.kind == "unanswerable":
        return any(identity in corpus.about.get(fact.entity, ()) for identity in plain)
    if question.kind not in ("conflict", "changed"):
        return True
    cued = found(query(phrases, fact, question.cue))
    new, old = corpus.gold[fact.key], corpus.outdated[fact.key]
    if question.kind == "changed":
        return new in cued
    return old in plain and new not in plain and new in cued and old not in cued


def _is_in_turn(
    question: Question,
    claims: Claims,
    corpus: Corpus,
    phrases: Phrases,
    found: Callable[[str], Sequence[str]],
) -> bool:
    """Does each query show the next passage of a dispute, and none one that is due later?

    Neither the question's own words nor the entity alone show the settling one.
    """
    fact = question.facts[0]
    first, second = corpus.disputing[fact.key]
    settling = corpus.gold[fact.key]
    plain, next_, last = (
        found(text)
        for text in (
            query(phrases, fact),
            query_of(phrases, claims.source, fact.entity),
            query_of(phrases, claims.settling, fact.entity),
        )
    )
    return (
        first in plain
        and not {second, settling} & set(plain)
        and second in next_
        and settling not in next_
        and settling in last
        and not {second, settling} & set(found(question.text))
        and settling not in found(fact.entity)
    )


def make_task(question: Question, corpus: Corpus, language: str, system: str = "") -> Task:
    """The task with its gold and labels."""
    last = question.facts[-1]
    kind = "number" if is_quantity(last.relation) else "entity"
    answerable = question.kind != "unanswerable"
    solvable = question.kind in ("known", "two_known_known")
    gold = [corpus.gold[fact.key] for fact in question.facts if fact.key in corpus.gold]
    relevant = list(gold) if answerable else list(corpus.about[last.entity])
    if question.kind == "conflict":
        relevant.append(corpus.outdated[last.key])
    relevant += corpus.disputing.get(last.key, ())
    unknown = sum(not fact.known for fact in question.facts)
    metadata: dict[str, JSON] = {
        "kind": question.kind,
        "solvable": "solvable" if solvable else "unsolvable",
        "must_ground": question.kind == "changed",
        "answerable": answerable,
        "gold_evidence": gold,
        "relevant_ids": relevant,
        "hops": _HOPS.get(question.kind, len(question.facts)),
        "min_calls": _MIN_CALLS.get(question.kind, unknown),
        "entities": [fact.entity for fact in question.facts],
        "question": question.text,
        "language": language,
    }
    if question.kind == "two_unknown_known":
        # From the bridge on, memory does: what must come back is the bridge.
        metadata["to_support"] = [last.entity]
    return Task(
        task_id=question.id,
        prompt=ask(question.text, system),
        reference={"type": kind, "answer": last.value if answerable else None},
        metadata=metadata,
    )


def ask(text: str, system: str = "") -> tuple[Message, ...]:
    """The prompt of a question."""
    user = Message(role="user", content=text)
    return (Message(role="system", content=system), user) if system else (user,)
