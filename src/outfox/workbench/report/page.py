"""The page, put together from a run folder alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import cast

from outfox.core.types import JSON
from outfox.core.yaml import dump_yaml
from outfox.store.files import write_whole
from outfox.store.pieces import Decode, pieces_by
from outfox.store.run_folder import RunFolder
from outfox.store.steps import Stored
from outfox.workbench.report import findings
from outfox.workbench.report.charts import Series, curves, number, shares
from outfox.workbench.report.episode import reward, transcript, words
from outfox.workbench.report.frame import fill
from outfox.workbench.report.stories import Candidate, Story, question, stories

Rows = Sequence[Mapping[str, JSON]]
_STOPS = ("answer", "done", "max_turns", "max_tokens", "malformed", "error")
_J = "1 − over-search − under-search; 0 is a policy that does not tell them apart."
_DECLINED = "Share of episodes: rightly, where there is no answer; wrongly, where there is one."
_LEAST_PART = 0.004
"""Parts whose mean never reaches this are named instead of drawn."""


def write_report(run: RunFolder, *, decode: Decode | None = None) -> Path:
    """Write `report.html` into the run folder, whatever the run holds so far; returns its path.

    Token texts come from the stored evaluation; `decode` makes them where they were not stored.
    """
    file = run.path / "report.html"
    write_whole(file, render(run, decode=decode))
    return file


def render(run: RunFolder, *, decode: Decode | None = None) -> str:
    """The page as text."""
    summary = run.summary()
    before, after = summary.get("before"), summary.get("after")
    rows = [row for row in run.metrics() if row.get("stage") == "reinforce"]
    parts = {
        "title": escape(str(run.config.get("name", run.path.name))),
        "facts": _facts(run, rows),
        "headline": findings.headline(before, after),
        "tiles": findings.tiles(before, after) + findings.greedy(summary.get("greedy")),
        "kinds": findings.by_kind(before, after),
        "curves": _curves(rows),
        "stories": _stories(run, decode),
        "table": findings.table(before, after),
        "settings": escape(dump_yaml(dict(run.about))),
    }
    return fill("page.html", parts)


def _facts(run: RunFolder, rows: Rows) -> str:
    versions = cast("Mapping[str, str]", run.about["versions"])
    shown = [
        f"seed {run.about.get('seed')}",
        f"{len(rows)} step{'' if len(rows) == 1 else 's'}",
        f"Outfox {versions.get('outfox', '')}",
        *([f"torch {versions['torch']}"] if "torch" in versions else []),
    ]
    return " · ".join(escape(fact) for fact in shown)


# -- curves ---------------------------------------------------------------------------------------
def _curves(rows: Rows) -> str:
    steps = [int(row["step"]) for row in rows]

    def series(name: str, key: str) -> Series:
        return Series(name=name, values=[row.get(key) for row in rows])

    loud, silent = _parts(rows)
    off = "Mean of each deduction, and of what gates cost, over all episodes."
    if silent:
        off += f" Next to nothing: {', '.join(silent)}."
    searches = [
        series("unknown", "behaviour/calls_needed"),
        series("known", "behaviour/calls_known"),
    ]
    earned = [series("reward", "reward"), series("outcome", "parts/outcome/mean")]
    declined = [
        series("no answer", "behaviour/abstain_right"),
        series("answerable", "behaviour/abstain_false"),
    ]
    figures = (
        curves(
            "Accuracy",
            "Share of the step’s training questions answered right.",
            steps,
            [series("right", "behaviour/accuracy")],
            low=0,
            high=1,
        ),
        curves(
            "Searches per question",
            "Known: answerable without a search. Unknown: not.",
            steps,
            searches,
            low=0,
        ),
        curves("J", _J, steps, [series("J", "behaviour/j")], high=1),
        curves("Says it does not know", _DECLINED, steps, declined, low=0, high=1),
        curves("Reward", "Mean total, and what the outcome alone earned.", steps, earned),
        curves("What was taken off", off, steps, [series(words(p), _part(p)) for p in loud]),
        shares(
            "How episodes end",
            "Share of episodes by stop reason.",
            steps,
            [series(words(reason), f"stop/{reason}") for reason in _STOPS],
        ),
        curves(
            "Entropy of the decision",
            "In nats, at the token that chooses between searching and answering.",
            steps,
            [series("entropy", "entropy/decision")],
            low=0,
        ),
    )
    return "".join(figures)


def _parts(rows: Rows) -> tuple[list[str], list[str]]:
    """The rubric's deductions that matter in this run, largest first, and those that do not."""
    largest: dict[str, float] = {}
    for row in rows:
        for key, value in row.items():
            name = key.removeprefix("parts/").removesuffix("/mean")
            if key == _part(name) and name != "outcome" and value is not None:
                largest[name] = max(largest.get(name, 0.0), abs(value))
    loud = sorted((n for n in largest if largest[n] >= _LEAST_PART), key=lambda n: -largest[n])
    return loud, sorted(words(name) for name in largest if name not in loud)


def _part(name: str) -> str:
    return f"parts/{name}/mean"


# -- trajectories ---------------------------------------------------------------------------------
def _stories(run: RunFolder, decode: Decode | None) -> str:
    stored = _latest(run)
    if stored is None:
        return '<p class="empty">No evaluation is stored, so there is nothing to read yet.</p>'
    peak = max(
        (float(abs(a).max()) for c in stored.credits.values() for a in c.advantages if len(a)),
        default=0.0,
    )
    return "".join(_story(story, stored, decode, peak) for story in stories(stored.groups))


def _latest(run: RunFolder) -> Stored | None:
    """The evaluation after training, or else the newest."""
    names = run.evaluations()
    if "after" in names:
        return run.evaluation("after")
    found = [run.evaluation(name) for name in names]
    return max(found, key=lambda stored: stored.step, default=None)


def _story(story: Story, stored: Stored, decode: Decode | None, peak: float) -> str:
    heading = f"<h3>{escape(story.title)}</h3><p>{escape(story.about)}</p>"
    if story.found is None:
        missing = f'<p class="empty">Missing: {escape(story.missing)} in this evaluation.</p>'
        return f'<article class="story none"><header>{heading}</header>{missing}</article>'
    trajectory, score = story.found.trajectory, story.found.score
    key = (trajectory.group_id, trajectory.sibling)
    pieces = stored.pieces.get(key)
    if pieces is None and decode is not None:
        pieces = [pieces_by(decode).of(ledger) for ledger in trajectory.ledgers]
    credit = stored.credits.get(key)
    return (
        f'<article class="story"><header>{heading}</header>{_asked(story.found)}'
        f"{transcript(trajectory, pieces, credit, peak)}"
        f'<section class="reward"><h4>Reward</h4>{reward(score)}</section></article>'
    )


def _asked(found: Candidate) -> str:
    trajectory, outcome = found.trajectory, found.score.outcome
    metadata = trajectory.task.metadata
    answer = "no answer" if trajectory.answer is None else trajectory.answer
    good = "good" if found.episode.right else "bad"
    verdict = "right abstention" if found.episode.right and found.episode.abstained else outcome
    facts = [
        str(metadata.get("kind", "")).replace("_", " "),
        f"{found.episode.calls} search{'' if found.episode.calls == 1 else 'es'}",
        f"total {number(found.score.total) if found.score.total is not None else '–'}",
    ]
    return (
        f'<div class="asked"><q dir="auto">{escape(question(trajectory))}</q>'
        f'<p><b dir="auto">{escape(answer)}</b> <em class="{good}">{escape(verdict)}</em></p>'
        f"<small>{escape(' · '.join(fact for fact in facts if fact))}</small></div>"
    )
