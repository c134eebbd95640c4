"""Evidence: does the answer rest on what came back?"""

from __future__ import annotations

from outfox.core.protocols import SignalContext
from outfox.core.results import NotApplicable, Value
from outfox.core.types import Trajectory
from outfox.rewards.evidence import documents_about, passage, states, supported
from outfox.rewards.lift import signal
from outfox.rewards.matchers import is_abstention, parse_reference


@signal(range=(0, 1), family="evidence")
def unsupported(trajectory: Trajectory, context: SignalContext) -> float | NotApplicable:
    """1 where evidence is required and no returned document supports the answer, else 0.

    Required: the domain must ground, or the question is not solvable closed-book. What supports
    means: `rewards/evidence.py`.
    """
    if trajectory.answer is None or is_abstention(trajectory.answer):
        return NotApplicable(why="nothing is asserted")
    if not context.must_ground and context.solvable != "unsolvable":
        return NotApplicable(why=f"no evidence required: {context.solvable} closed-book")
    found = supported(trajectory)
    if found is None:
        return NotApplicable(why="the answer's words prove nothing and no gold passage is labelled")
    return float(not found)


@signal(range=(0, 1), family="evidence")
def citation_validity(trajectory: Trajectory) -> float | NotApplicable:
    """Share of cited ids that the environment returned in this episode."""
    cited = set(trajectory.citations)
    if not cited:
        return NotApplicable(why="nothing is cited")
    return len(cited & {document.id for document in trajectory.documents}) / len(cited)


@signal(range=(0, 1), family="evidence")
def fabricated_citation(trajectory: Trajectory) -> Value | NotApplicable:
    """1 where a cited id was never returned in this episode."""
    if not trajectory.citations:
        return NotApplicable(why="nothing is cited")
    returned = {document.id for document in trajectory.documents}
    invented = [cited for cited in trajectory.citations if cited not in returned]
    return Value(value=float(bool(invented)), why=", ".join(invented))


@signal(range=(0, 1), family="evidence")
def citation_imprecision(trajectory: Trajectory) -> float | NotApplicable:
    """Share of cited ids whose document does not state the answer, or was never returned."""
    cited = set(trajectory.citations)
    if not cited:
        return NotApplicable(why="nothing is cited")
    return 1 - len(cited & _stating(trajectory)) / len(cited)


def _stating(trajectory: Trajectory) -> set[str]:
    """Ids of returned documents that bear the answer out; of an abstention, that are about it."""
    task, answer = trajectory.task, trajectory.answer or ""
    gold = parse_reference(task.reference, row=task.task_id)
    by_words = gold.type in ("text", "entity", "number", "date") and not is_abstention(answer)
    return {
        document.id
        for document in documents_about(task, trajectory.documents)
        if not by_words or states(gold, answer, passage(document))
    }


SIGNALS = (unsupported, citation_validity, fabricated_citation, citation_imprecision)
