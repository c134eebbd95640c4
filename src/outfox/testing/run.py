"""A made-up run folder, realistic enough to look at: a policy that learns when to search.

Nothing is trained; behaviour follows a learning curve and a seed. For tests of what reads run
folders, and for looking at pages while they are designed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np

from outfox.core.comparison import ComparisonFile, load_comparison
from outfox.core.results import Outcome, Score, ScoredGroup, TrajectoryCredit, Value
from outfox.core.seeding import rng
from outfox.core.types import JSON, Document, Group, Message, StopReason, Task
from outfox.evaluation.behaviour import behaviour
from outfox.evaluation.metrics import measure
from outfox.evaluation.summary import summary
from outfox.store.run_folder import RunFolder
from outfox.testing.store import Move, Words, made_up

_KINDS = ("one hop, known", "one hop, unknown", "two hops", "conflict", "stale", "unanswerable")
_FACTS = (
    ("Lyon", "country", "France"),
    ("France", "currency", "Euro"),
    ("Perú", "currency", "Sol"),
    ("Ulaanbaatar", "country", "Mongolia"),
    ("日本", "首都", "东京"),
    ("Côte d'Ivoire", "capital", "Yamoussoukro"),
    ("Bhutan", "currency", "Ngultrum"),
    ("القاهرة", "country", "Egypt"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    task: Task
    entity: str
    relation: str
    value: str


def made_up_comparison(
    path: Path, *, steps: int = 60, questions: int = 120, seeds: Sequence[int] = (0, 1)
) -> tuple[ComparisonFile, dict[str, dict[int, RunFolder]]]:
    """The shipped contrast and its runs, by variant and seed, in the folder `path`."""
    words = [f"seeds={','.join(map(str, seeds))}", f"run.dir={path}"]
    file = load_comparison("when-to-search-contrast", words)
    assert file is not None
    runs: dict[str, dict[int, RunFolder]] = {}
    for variant, skill in zip(file.comparison.variants, (0.97, 0.6, 0.85), strict=True):
        runs[variant] = {
            seed: made_up_run(
                file.place(variant, seed),
                steps=steps,
                questions=questions,
                seed=seed,
                skill=skill,
            )
            for seed in seeds
        }
    return file, runs


def made_up_run(
    path: Path,
    *,
    steps: int = 80,
    questions: int = 240,
    seed: int = 0,
    finished: bool = True,
    skill: float = 0.97,
) -> RunFolder:
    """A run folder of `steps` steps with evaluations before and after, and its summary.

    `skill`: what it comes to; 0 tosses coins, 1 searches by need.
    """
    words = Words()
    config = {"name": "when-to-search", "seed": seed, "steps": steps, "algorithm": "grpo"}
    played = {"rollout": {"tasks": 12, "group_size": 4}, "eval": {"samples": 2}}
    run = RunFolder.create(path, {**config, **played})
    before = _play(words, -1, questions, 2, skill=0.0, seed=seed)
    run.add_evaluation("before", -1, before, credits=_credits(before), decode=words.decode)
    for step in range(steps):
        reached = skill / 0.97 / (1 + math.exp(-(step / steps - 0.35) * 12))
        groups = _play(words, step, 12, 4, skill=reached, seed=seed)
        entropy = 0.69 * (1 - 0.75 * reached) + 0.02 * rng(seed, step).random()
        totals = [score.total or 0.0 for group in groups for score in group.scores]
        metrics = {"reward": float(np.mean(totals)), "entropy/decision": entropy}
        run.add_metrics(step, {**metrics, **behaviour(groups)})
        run.add_timings(step, {"rollout": 1.1, "update": 0.9})
    if not finished:
        return run
    after = _play(words, steps, questions, 2, skill=skill, seed=seed)
    run.add_evaluation("after", steps - 1, after, credits=_credits(after), decode=words.decode)
    about: dict[str, JSON] = {"recipe": "when-to-search", "seed": seed, "steps": steps}
    run.write_summary(summary(before=measure(before), after=measure(after), **about))
    run.add_timings(steps, {"whole": 2.0 * steps + 60}, stage="run")
    return run


def _play(
    words: Words, step: int, count: int, siblings: int, *, skill: float, seed: int
) -> list[ScoredGroup]:
    groups: list[ScoredGroup] = []
    for index in range(count):
        question = _question(index)
        group_id = f"{step}/{question.task.task_id}"
        chances = [rng(seed, step, index, sibling) for sibling in range(siblings)]
        moves = [_moves(question, skill, chance) for chance in chances]
        stops: list[StopReason] = [
            _stop(m, skill, chance) for m, chance in zip(moves, chances, strict=True)
        ]
        members = tuple(
            made_up(question.task, m, words=words, sibling=i, group_id=group_id, stop_reason=stop)
            for i, (m, stop) in enumerate(zip(moves, stops, strict=True))
        )
        scores = tuple(_score(question, m) for m in moves)
        groups.append(
            ScoredGroup(group=Group(group_id=group_id, trajectories=members), scores=scores)
        )
    return groups


def _question(index: int) -> _Question:
    kind = _KINDS[index % len(_KINDS)]
    entity, relation, value = _FACTS[(index // len(_KINDS)) % len(_FACTS)]
    answerable = kind != "unanswerable"
    metadata: dict[str, JSON] = {
        "kind": kind,
        "solvable": "solvable" if kind == "one hop, known" else "unsolvable",
        "must_ground": kind == "stale",
        "answerable": answerable,
        "hops": 2 if kind == "two hops" else 1,
        "gold_evidence": ["d-gold"] if answerable else [],
        "relevant_ids": ["d-gold"],
        "question": f"What is the {relation} of {entity}?",
    }
    message = Message(role="user", content=f"What is the {relation} of {entity}?")
    reference = {"type": "entity", "answer": value if answerable else None}
    task = Task(task_id=f"q{index}", prompt=(message,), reference=reference, metadata=metadata)
    return _Question(task=task, entity=entity, relation=relation, value=value)


def _moves(question: _Question, skill: float, chance: Random) -> list[Move]:
    """The policy guesses and searches by coin at skill 0, and by need at skill 1."""
    metadata = question.task.metadata
    known, hops = metadata["solvable"] == "solvable", metadata["hops"]
    head = f"{question.entity} {question.relation} : "
    searches = chance.random() < (0.55 * (1 - skill) + 0.06 if known else 0.45 + 0.53 * skill)
    guess = question.value if known else chance.choice(["Sol", "Euro", "Egypt", "unknown"])
    if not searches:
        reading = "[sure]" if known else "[unsure]"
        return [Move(thought=head + guess, reading=reading, answer=guess)]
    moves: list[Move] = []
    query = f"{question.entity} {question.relation}"
    if chance.random() < 0.1:
        moves.append(Move(thought=head + guess, reading="[unsure]", query=query, status="error"))
    for hop in range(hops if chance.random() < 0.5 + 0.5 * skill else 1):
        documents = (_passage(question, hop), _distractor(question))
        reading = None if moves else "[unsure]"  # What follows an observation is a note.
        moves.append(Move(thought=head + guess, reading=reading, query=query, documents=documents))
    found = question.value if metadata["answerable"] else "unknown"
    if chance.random() > 0.55 + 0.4 * skill:
        found = chance.choice(["Sol", "Euro", "Mongolia"])
    conflict = "sources disagree, the later holds : " if metadata["kind"] == "conflict" else head
    return [*moves, Move(thought=conflict + found, answer=found)]


def _stop(moves: list[Move], skill: float, chance: Random) -> StopReason:
    """Takes the answer away where the episode ends without one."""
    if chance.random() > 0.22 * (1 - skill):
        return "answer"
    moves[-1] = replace(moves[-1], answer=None)
    stops: tuple[StopReason, ...] = ("max_turns", "malformed", "malformed", "max_tokens")
    return chance.choice(stops)


def _passage(question: _Question, hop: int) -> Document:
    answerable = question.task.metadata["answerable"]
    value = question.value if answerable else "not recorded"
    text = f"{question.entity} ({2019 + 5 * hop}): the {question.relation} is {value}."
    return Document(id="d-gold", text=text, date=f"{2019 + 5 * hop}-03-01")


def _distractor(question: _Question) -> Document:
    return Document(
        id="d-7", text=f"<script>alert('{question.relation}')</script> & other {question.entity}"
    )


def _score(question: _Question, moves: Sequence[Move]) -> Score:
    """Roughly the default rubric."""
    metadata, answer = question.task.metadata, moves[-1].answer
    calls = sum(move.query is not None for move in moves)
    abstained, answerable = answer == "unknown", bool(metadata["answerable"])
    right = abstained if not answerable else answer == question.value
    outcome: Outcome = "right" if right else "abstained" if abstained else "wrong"
    if answer is None:
        outcome = "unanswered"
    parts = {"outcome": 1.0 if right else 0.0 if abstained and calls else -0.5}
    needless = max(0, calls - (0 if metadata["solvable"] == "solvable" else metadata["hops"]))
    failed = sum(move.status == "error" for move in moves)
    if right:
        parts["needless_calls"] = -0.12 * max(0, needless - failed)
        parts["failed_calls"] = -0.05 * failed
        parts["unsupported"] = 0.0 if calls or metadata["solvable"] == "solvable" else -0.4
    why = f"{answer!r} against {question.value!r}" if answerable else "no answer exists"
    results = {
        "typed_match": Value(value=float(right), why=why),
        "needless_calls": Value(
            value=min(1.0, needless / 3), why=f"{needless} beyond what it took"
        ),
    }
    return Score(total=sum(parts.values()), outcome=outcome, results=results, parts=parts)


def _credits(groups: Sequence[ScoredGroup]) -> list[list[TrajectoryCredit]]:
    """Totals minus the group's mean, on policy tokens."""
    found: list[list[TrajectoryCredit]] = []
    for group in groups:
        totals = [score.total or 0.0 for score in group.scores]
        found.append(
            [
                TrajectoryCredit(
                    advantages=tuple(
                        (ledger.loss_mask * (total - np.mean(totals))).astype(np.float32)
                        for ledger in trajectory.ledgers
                    )
                )
                for total, trajectory in zip(totals, group.group.trajectories, strict=True)
            ]
        )
    return found
