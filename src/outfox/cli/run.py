"""One run from start to finish: the loop, with run folder, display and checkpoints around it.

cold start ─▶ gates ─▶ evaluate (before) ─▶ reinforce, step by step ─▶ evaluate (after) ─▶ report

Evaluations draw at temperature 1; a greedy one may follow the one after training.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

from outfox.build import Lesson, System, reinforcement
from outfox.cli.cold_start import DRILLS, cold_start, gates
from outfox.cli.display import Display
from outfox.core.brief import drills
from outfox.core.isolation.failures import failures, from_row, to_row
from outfox.core.isolation.isolation import Isolation
from outfox.core.protocols import Sampling, Stateful
from outfox.core.recipe import Recipe
from outfox.core.results import StepResult
from outfox.core.types import JSON
from outfox.evaluation.behaviour import behaviour
from outfox.evaluation.evaluate import Evaluation, evaluate
from outfox.evaluation.gates import decision_gate, recall
from outfox.evaluation.intervals import NOT_MEASURED, Estimate
from outfox.evaluation.metrics import Measures, measure
from outfox.evaluation.summary import line, summary
from outfox.learning.checkpoint import export_model, load_checkpoint, save_checkpoint
from outfox.loop import train
from outfox.policies.loading import without_bars
from outfox.policies.lora import merged
from outfox.store.run_folder import RunFolder
from outfox.store.tracking import Tracked, tracking
from outfox.workbench.report import write_report

BEFORE = -1
"""The step of an evaluation before any reinforcement."""

GARBAGE = 50_000
"""New objects between collections: about those of a step. Python's own 700 take a tenth of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run came to."""

    summary: Mapping[str, JSON]
    before: Measures | None
    after: Measures | None
    greedy: Measures | None


async def run(system: System, folder: RunFolder, display: Display) -> Outcome | None:
    """Go on from the newest checkpoint in `folder`, or begin. The folder must be locked.

    With several ranks every one calls this; the leading one writes, and returns the outcome.
    """
    trackers = system.trackers if system.leads else ()
    with _frozen(), tracking(folder, trackers) as tracked:
        return await _run(system, folder, display, tracked)


@contextmanager
def _frozen() -> Generator[None]:
    """Worlds and models live to the end: a collection of garbage need not walk them each time.

    Nor need it walk a step's trajectories while they are made: they are no garbage.
    """
    gc.collect()
    gc.freeze()
    usual = gc.get_threshold()
    gc.set_threshold(GARBAGE)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


async def _run(
    system: System, folder: RunFolder, display: Display, tracked: Tracked
) -> Outcome | None:
    begun = perf_counter()
    start = await _prepare(system, folder, display)
    lesson = reinforcement(system)
    if start:
        _restore(system, folder, lesson, start - 1)
    before = await _evaluated("before", system, folder, display, start)
    await _reinforce(system, folder, display, tracked, lesson, start)
    after = await _evaluated("after", system, folder, display, lesson.steps)
    greedy = await _evaluated("greedy", system, folder, display, lesson.steps)
    if not system.leads:
        return None
    content = summary(
        recipe=system.recipe.name,
        seed=system.recipe.seed,
        steps=lesson.steps,
        before=before,
        after=after,
        greedy=greedy,
        settings={name: _drawn(name, system.recipe) for name in ("before", "after", "greedy")},
    )
    if system.recipe.model.lora is not None:
        with without_bars(), merged(system.model.model) as whole:
            export_model(folder.path / "model", whole, system.model.tokenizer)
    folder.write_summary(content)
    tracked.end(content)
    folder.add_timings(lesson.steps, {"whole": perf_counter() - begun}, stage="run")
    write_report(folder)
    return Outcome(summary=content, before=before, after=after, greedy=greedy)


async def _prepare(system: System, folder: RunFolder, display: Display) -> int:
    """The step to begin with: after the newest checkpoint, else 0 with a cold-started policy."""
    saved = system.from_lead(folder.checkpoints())
    if system.leads:
        folder.rewind(saved[-1] if saved else BEFORE)
    if system.isolation is not None:
        system.isolation.failures.update(
            from_row(row) for row in folder.events() if row["event"] == "user_code"
        )
    if saved:
        if system.leads:
            folder.keep_checkpoints(system.recipe.save.keep)  # It may have died before it did so.
        display.say(f"resuming after step {saved[-1]}")
        return saved[-1] + 1
    if system.recipe.cold_start.steps:
        await cold_start(system, folder, display)
        if system.recipe.cold_start.gates:
            await gates(system, folder, display)
    return 0


async def _reinforce(
    system: System,
    folder: RunFolder,
    display: Display,
    tracked: Tracked,
    lesson: Lesson,
    start: int,
) -> None:
    with display.bar("reinforcement", lesson.steps) as bar:
        steps = train(lesson.stage, lesson.trainer, system.engine, steps=lesson.steps, start=start)
        async for result in steps:
            if system.leads:
                _store(system, folder, tracked, lesson, result)
            bar.to(result.step + 1, line(measure(result.groups)))


def _keep_failures(isolation: Isolation, folder: RunFolder, result: StepResult) -> None:
    """Ahead of the step itself: a run that is stopped in between asks none of them again."""
    for asked, failure in failures(result.groups).items():
        if asked not in isolation.failures:
            folder.add_event("user_code", **to_row(asked, failure))


def _store(
    system: System, folder: RunFolder, tracked: Tracked, lesson: Lesson, result: StepResult
) -> None:
    if system.isolation is not None:
        _keep_failures(system.isolation, folder, result)
    folder.add_groups(
        result.step,
        result.groups,
        rubric=system.rubric.hash,
        credits=result.credits,
        decode=system.codec.decode,
    )
    metrics = {**result.metrics, **behaviour(result.groups)}
    folder.add_metrics(result.step, metrics)
    folder.add_timings(result.step, result.timings)
    tracked.log(result.step, metrics, result.timings, result.groups)
    last = result.step + 1 == lesson.steps
    if last or (result.step + 1) % system.recipe.save.every == 0:
        _save(system, folder, lesson, result.step)


async def _evaluated(
    name: str, system: System, folder: RunFolder, display: Display, step: int
) -> Measures | None:
    """An evaluation is made once; a resumed run reads what is stored."""
    wanted = {"before": system.recipe.eval.before, "greedy": system.recipe.eval.greedy}
    if not wanted.get(name, True):
        return None
    if system.from_lead(name in folder.evaluations()):
        return measure(folder.evaluation(name).groups, closed_book_recall=_recalled(name, folder))
    made = await _evaluate(name, system, display, step)
    if not system.leads:
        return made.measures
    last = BEFORE if name == "before" else step - 1
    recalled: dict[str, JSON] = asdict(made.measures.closed_book_recall)
    # Events first: an evaluation is finished once it is stored, and then nothing of it is missing.
    folder.add_event("evaluation", step=last, of=name, closed_book_recall=recalled)
    if name == "before":
        gate = decision_gate(made.groups)
        display.say(str(gate))
        folder.add_event("gates", step=last, of=name, decision=gate.estimate.value)
    folder.add_evaluation(
        name,
        last,
        made.groups,
        credits=made.credits,
        decode=system.codec.decode,
    )
    return made.measures


def _recalled(name: str, folder: RunFolder) -> Estimate:
    """It is measured beside the episodes, so an event keeps it."""
    found = [row for row in folder.events() if row["event"] == "evaluation" and row["of"] == name]
    return Estimate(**found[-1]["closed_book_recall"])


def _drawn(name: str, recipe: Recipe) -> dict[str, Any]:
    """How an evaluation's episodes are drawn, whatever training does; kept with its result."""
    settings, greedy = recipe.eval, name == "greedy"
    return {
        "questions": settings.questions,
        "samples": 1 if greedy else settings.samples,
        "temperature": 0.0 if greedy else 1.0,
        "seed": settings.seed,
        "world": dict(settings.world),
    }


async def _evaluate(name: str, system: System, display: Display, step: int) -> Evaluation:
    drawn = _drawn(name, system.recipe)
    tasks = system.world.draw(drawn["questions"], drawn["seed"])
    samples = drawn["samples"]
    recalled = NOT_MEASURED
    if system.demonstrations is not None and name != "greedy":
        recalled = await recall(
            system.engine, system.codec, system.demonstrations, **drills(*DRILLS)
        )
    with display.bar(f"evaluation {name}", len(tasks) * samples) as bar:
        return await evaluate(
            tasks,
            policy=replace(system.policy, sampling=Sampling(temperature=drawn["temperature"])),
            environment=system.evaluated.environment,
            rubric=system.rubric,
            limits=system.limits,
            readings=system.readings,
            samples=samples,
            seed=drawn["seed"],
            step=step,
            credit=system.credit,
            closed_book_recall=recalled,
            progress=lambda done, _: bar.to(done),
            ranks=system.ranks,
        )


# -- checkpoints ----------------------------------------------------------------------------------
def _stateful(system: System) -> dict[str, Stateful]:
    parts: dict[str, Stateful] = {"rubric": system.rubric}
    return parts if system.table is None else {**parts, "solvability": system.table}


def _save(system: System, folder: RunFolder, lesson: Lesson, step: int) -> None:
    save_checkpoint(
        folder.checkpoint(step),
        trainer=lesson.trainer,
        tokenizer=system.model.tokenizer,
        cursor={"step": step},
        parts=_stateful(system),
    )
    folder.keep_checkpoints(system.recipe.save.keep)


def _restore(system: System, folder: RunFolder, lesson: Lesson, step: int) -> None:
    load_checkpoint(folder.checkpoint(step), trainer=lesson.trainer, parts=_stateful(system))
    system.engine.load_weights(lesson.trainer.weights(), lesson.trainer.policy_version)
