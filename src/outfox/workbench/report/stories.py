"""Six trajectories worth reading, chosen from the last stored evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from outfox.core.results import Score, ScoredGroup
from outfox.core.types import CALL_FAILED, Trajectory
from outfox.evaluation.episodes import Episode, episode

_FAILED = (*CALL_FAILED, "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One scored episode, with what the choice looks at."""

    trajectory: Trajectory
    score: Score
    episode: Episode
    contrast: bool
    """Its siblings earned something else, so that its tokens have an advantage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One kind of trajectory to show, and the one that was found."""

    title: str
    about: str
    missing: str
    """What is said where none was found."""
    found: Candidate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    title: str
    about: str
    missing: str
    fits: Callable[[Candidate], bool]
    best: Callable[[Candidate], float] = lambda candidate: 0.0
    """Among those that fit, the highest is shown; then one with an advantage, on a question that
    was not shown yet, and short."""


def _hops(candidate: Candidate) -> int:
    hops = candidate.trajectory.task.metadata.get("hops")
    return hops if isinstance(hops, int) else 0


def _is_direct(c: Candidate) -> bool:
    return c.episode.known and c.episode.right and c.episode.answerable and not c.episode.calls


def _is_two_hops(c: Candidate) -> bool:
    chain = _hops(c) >= 2 and not c.episode.kind.startswith(("conflict", "disputed"))
    return chain and c.episode.right and c.episode.answerable and c.episode.calls >= 1


def _is_conflict(c: Candidate) -> bool:
    return c.episode.kind.startswith("conflict") and c.episode.calls >= 1


def _is_recovered(c: Candidate) -> bool:
    """A call failed or a turn could not be read; the policy went on, and is right."""
    statuses = [result.status for result in c.trajectory.results]
    troubled = [turn.error is not None for turn in c.trajectory.turns]
    went_on = any(
        status in _FAILED and "ok" in statuses[index + 1 :] for index, status in enumerate(statuses)
    )
    return c.episode.right and (went_on or any(troubled))


def _is_abstention(c: Candidate) -> bool:
    return c.episode.abstained and not c.episode.answerable and c.episode.calls >= 1


def _is_mistake(c: Candidate) -> bool:
    return not c.episode.right and not c.episode.abstained and c.trajectory.answer is not None


_WANTED = (
    _Wanted(
        title="A known fact, answered directly",
        about="The policy was taught this closed-book; searching would only cost.",
        missing="no known fact was answered without a search",
        fits=_is_direct,
    ),
    _Wanted(
        title="Two hops",
        about="The second question can only be asked once the first is answered.",
        missing="no question of two hops was answered right with a search",
        fits=_is_two_hops,
        best=lambda c: min(c.episode.calls, 2) + (c.score.total or 0.0) / 10,
    ),
    _Wanted(
        title="Sources in conflict",
        about="Passages disagree, and the policy has to settle which one holds.",
        missing="no question with conflicting sources was searched",
        fits=_is_conflict,
        best=lambda c: c.episode.resolved,
    ),
    _Wanted(
        title="A failed call, recovered from",
        about="A call failed on the way; the answer is right all the same.",
        missing="no failed call was followed by a right answer",
        fits=_is_recovered,
    ),
    _Wanted(
        title="An abstention",
        about="There is no answer to find, and the policy says so after looking.",
        missing="no unanswerable question was searched and then declined",
        fits=_is_abstention,
        best=lambda c: float(c.episode.relevant),
    ),
    _Wanted(
        title="A mistake",
        about="A wrong assertion: what the reward must make cost more than saying “unknown”.",
        missing="no wrong answer was given",
        fits=_is_mistake,
        best=lambda c: float(c.episode.answerable),
    ),
)


def stories(groups: Sequence[ScoredGroup]) -> list[Story]:
    """One story per kind, in reading order; no trajectory is told twice."""
    candidates = [candidate for group in groups for candidate in _candidates(group)]
    told: set[tuple[str, int]] = set()
    asked: set[str] = set()
    chosen: list[Story] = []
    for wanted in _WANTED:
        fitting = [c for c in candidates if _key(c) not in told and wanted.fits(c)]
        found = max(
            fitting,
            key=lambda c, wanted=wanted: (
                wanted.best(c),
                c.contrast,
                question(c.trajectory) not in asked,
                -len(c.trajectory.turns),
            ),
            default=None,
        )
        if found:
            told.add(_key(found))
            asked.add(question(found.trajectory))
        chosen.append(
            Story(title=wanted.title, about=wanted.about, missing=wanted.missing, found=found)
        )
    return chosen


def question(trajectory: Trajectory) -> str:
    """What was asked, in one line."""
    named = trajectory.task.metadata.get("question")
    return str(named or trajectory.task.prompt[-1].content)


def _candidates(group: ScoredGroup) -> list[Candidate]:
    members = zip(group.group.trajectories, group.scores, strict=True)
    totals = {round(s.total, 9) for s in group.scores if s.total is not None}
    return [
        Candidate(trajectory=t, score=s, episode=episode(t, s), contrast=len(totals) > 1)
        for t, s in members
        if s.outcome != "failed"
    ]


def _key(candidate: Candidate) -> tuple[str, int]:
    return candidate.trajectory.group_id, candidate.trajectory.sibling
