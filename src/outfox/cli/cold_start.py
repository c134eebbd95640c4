"""The cold start: imitate the world's demonstrations once, then take the weights from the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from outfox.build import System, imitation
from outfox.cli.display import Display
from outfox.core.brief import drills
from outfox.core.folders import cache_of
from outfox.core.types import JSON
from outfox.evaluation.gates import Gate, run_gates
from outfox.learning.checkpoint import load_checkpoint, save_checkpoint
from outfox.loop import train
from outfox.store.run_folder import RunFolder, content_hash

STAGE = "imitate"
DRILLS = (200, 64)
"""Drills of each gate, and known facts that are asked for; most tokens of an answer."""
_MADE_BY = ("core", "worlds", "policies", "learning", "loop.py", "build.py")
"""Sources that a cold start's weights depend on."""
_NOT_BY = ("policies/engines", "policies/engine_policy.py", "learning/credit")
"""Of these sources, those that only episodes need."""
_SETTINGS = (
    "seed",
    "threads",
    "processes",
    "world",
    "model",
    "codec",
    "readings",
    "cold_start",
    "trainer",
)
_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Record:
    """The metrics of each step; Stateful, so that a run holds the same with and without cache."""

    metrics: list[dict[str, JSON]] = field(default_factory=lambda: list[dict[str, JSON]]())

    def state(self) -> JSON:
        return self.metrics

    def restore(self, state: JSON) -> None:
        self.metrics[:] = state


async def cold_start(system: System, folder: RunFolder, display: Display) -> None:
    """Bring the system's model to its cold-started weights, from the cache where they are there."""
    lesson = imitation(system)
    place = cache_place(system)
    record = Record()
    seconds: list[Mapping[str, float]] = []
    if system.from_lead((place / "state.json").exists()):
        load_checkpoint(place, trainer=lesson.trainer, parts={"record": record})
        display.say(f"cold start from the cache ({place.name})")
    else:
        with display.bar("cold start", lesson.steps) as bar:
            async for result in train(lesson.stage, lesson.trainer, steps=lesson.steps):
                record.metrics.append(dict(result.metrics))
                seconds.append(result.timings)
                loss = result.metrics["imitation/nll"]
                text = f"nll {loss:.3f}" if result.step % 50 == 49 else ""
                bar.to(result.step + 1, text)
        if system.leads:
            save_checkpoint(
                place,
                trainer=lesson.trainer,
                tokenizer=system.model.tokenizer,
                cursor={"step": lesson.steps},
                parts={"record": record},
            )
    if system.leads:
        folder.add_stage(STAGE, record.metrics, seconds)
        folder.add_event("cold_start", stage=STAGE, key=place.name)
    system.engine.load_weights(lesson.trainer.weights(), 0)


async def gates(system: System, folder: RunFolder, display: Display) -> tuple[Gate, ...]:
    """Measure the drill gates; one that fails is a warning, for the result says what it cost."""
    assert system.demonstrations is not None
    measured = await run_gates(
        system.engine, system.codec, system.demonstrations, **drills(*DRILLS)
    )
    display.say("gates: " + " · ".join(map(str, measured)))
    if system.leads:
        values: dict[str, JSON] = {gate.name: gate.estimate.value for gate in measured}
        folder.add_event("gates", stage=STAGE, values=values)
    return measured


def cache_place(system: System) -> Path:
    """The folder of these weights: named by a hash of everything that makes them."""
    config = system.config
    made_of: dict[str, JSON] = {key: config[key] for key in _SETTINGS}
    made_of["sources"] = _sources()
    made_of["files"] = [system.world.made_of, *_own_code(system)]
    made_of["versions"] = {name: version(name) for name in ("torch", "transformers", "numpy")}
    return cache_of(system.recipe.cache.dir) / "cold-start" / content_hash(made_of)


def _own_code(system: System) -> list[str]:
    """Hashes of the user's files that hold parts; a signal has no say in a cold start."""
    recipe = system.recipe
    named = (recipe.world, recipe.codec, recipe.engine, recipe.trainer, *recipe.tools)
    sources = {Path(part.type.rpartition(":")[0]).name for part in named}
    files = system.parts.files.items()
    return sorted(digest for file, digest in files if Path(file).name in sources)


def _sources() -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name in _MADE_BY:
        place = _PACKAGE / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            if not any(file.is_relative_to(_PACKAGE / other) for other in _NOT_BY):
                digest.update(file.read_bytes())
    return digest.hexdigest()
