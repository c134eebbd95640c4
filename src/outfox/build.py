"""From a recipe to parts that fit: names resolved, settings validated, seams joined.

recipe.yaml ─▶ Recipe ─assemble─▶ System: world · model · codec · engine · policy · rubric · ...
                                    ├─ imitation(system)      ─▶ Lesson: a stage, its trainer
                                    └─ reinforcement(system)  ─▶ Lesson
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from outfox.core.brief import shortened
from outfox.core.config import Part, RecipeFile, merge, to_data, validate
from outfox.core.errors import ConfigError
from outfox.core.folders import cache_of, find
from outfox.core.isolation.isolation import Isolation, isolate
from outfox.core.parts import Parts, Resolved, refuse_own
from outfox.core.protocols import Codec, Credit, Engine, Sampling, Tracker, Trainer
from outfox.core.ranks import ALONE, Ranks
from outfox.core.recipe import Recipe
from outfox.core.types import JSON, Task
from outfox.evaluation.solvability import refresh
from outfox.learning.algorithms import Algorithm, algorithm
from outfox.loop import Imitate, Probe, Reinforce
from outfox.policies.codecs.check import check_codec, check_pauses, check_spans
from outfox.policies.codecs.markup import text_parameters
from outfox.policies.engine_policy import EnginePolicy, closed_book
from outfox.policies.loading import LoadedModel, load
from outfox.policies.lora import with_lora
from outfox.policies.tiny import build_model, build_tokenizer
from outfox.rewards.rubric import RubricTree
from outfox.rewards.score import make_rubric
from outfox.rewards.solvability import Solvability, WorldSolvability
from outfox.rewards.tree import tree_of
from outfox.rollout.group import RolloutPlan
from outfox.rollout.limits import Limits
from outfox.rollout.readings import Reading, readings_of
from outfox.worlds.tasks.formats import make_format
from outfox.worlds.tools.own import recipe_tool
from outfox.worlds.world import DemonstrationSource, Supplies, World, check_names

T = TypeVar("T")

IMITATION = Part(type="mixed")
"""The loss of a cold start: no reference model, whatever the algorithm asks for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class System:
    """Everything that a run is made of, but for what is trained."""

    recipe: Recipe
    isolation: Isolation | None
    """Where the user's signals and tools run; None: in this process."""
    config: Mapping[str, JSON]
    """The recipe with every setting of every part written out."""
    parts: Parts
    ranks: Ranks
    world: World
    evaluated: World
    """What evaluations act in: the same held-out questions, other answers to a call."""
    model: LoadedModel
    """As it begins; trainers train this model in place."""
    codec: Codec
    engine: Engine
    policy: EnginePolicy
    rubric: RubricTree
    table: Solvability | None
    """Closed-book readings of the policy; None where the world's labels serve."""
    credit: Credit
    plan: RolloutPlan
    limits: Limits
    readings: Mapping[str, Reading]
    demonstrations: DemonstrationSource | None
    trackers: tuple[Tracker, ...]

    @property
    def leads(self) -> bool:
        """True in the one process that writes to the run folder."""
        return self.ranks.index == 0

    def from_lead(self, value: T) -> T:
        """What the leading process found; others may see the disk a moment earlier or later."""
        return self.ranks.gather(value)[0]

    @property
    def files(self) -> tuple[Path, ...]:
        """The user's own files that were loaded."""
        return tuple(Path(file) for file in self.parts.files)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lesson:
    """A stage for the loop, and the trainer that it updates."""

    stage: Imitate | Reinforce
    trainer: Trainer
    steps: int


def assemble(file: RecipeFile, *, allow_user_code: bool = True, ranks: Ranks = ALONE) -> System:
    """All parts of a recipe. Raises ConfigError or DataError before anything is written."""
    recipe = shortened(validate(Recipe, {"name": file.name, **file.data}))
    parts = Parts(allow_user_code=allow_user_code, folders=file.folders)
    tree = tree_of(recipe.rubric, file.folders)
    if not allow_user_code:
        signals: list[JSON] = [{"type": name} for name in tree.signals]
        refuse_own([to_data(recipe), signals, to_data(tree)])
    readings = readings_of(recipe.readings)
    isolation = isolate(recipe.user_code)
    supplies = _supplies(recipe, parts, isolation, file.folders)
    recipe = replace(recipe, codec=_codec(recipe, supplies))
    world: World = parts.make("world", recipe.world, supplies)
    model = with_lora(_model(recipe, world, file.folders), recipe.model.lora, seed=recipe.seed)
    codec: Codec = parts.make("codec", recipe.codec, model.tokenizer)
    check_codec(codec)
    engine: Engine = parts.make("engine", recipe.engine, model.model, model.tokenizer)
    chosen = algorithm(recipe.algorithm, parts)
    table = Solvability() if recipe.solvability.source == "probe" else None
    rubric = make_rubric(tree, parts, table or WorldSolvability(), isolation)
    if isolation is not None:
        isolation.workers.ready()
    system = System(
        recipe=recipe,
        isolation=isolation,
        ranks=ranks,
        config=_resolved(recipe, parts, rubric),
        parts=parts,
        world=world,
        evaluated=_evaluated(recipe, parts, supplies, world),
        model=model,
        codec=codec,
        engine=engine,
        policy=EnginePolicy(
            engine, codec, sampling=Sampling(temperature=recipe.sampling.temperature)
        ),
        rubric=rubric,
        table=table,
        credit=parts.make("credit", chosen.credit, where="algorithm.credit"),
        plan=validate(RolloutPlan, _plan(recipe, chosen), where="algorithm"),
        limits=_limits(recipe, engine),
        readings=readings,
        demonstrations=(
            world.demonstrations(codec, readings=bool(readings)) if world.demonstrations else None
        ),
        trackers=tuple(found.factory(**found.settings) for found in _trackers(recipe, parts)),
    )
    _check(system)
    return system


def imitation(system: System) -> Lesson:
    """The cold start: the world's demonstrations, imitated."""
    cold = system.recipe.cold_start
    trainer = _with(system.recipe.trainer, **cold.trainer)
    return Lesson(
        stage=Imitate(
            demonstrations=_demonstrations(system),
            codec=system.codec,
            count=cold.items,
            ranks=system.ranks,
        ),
        trainer=_trainer(system, trainer, IMITATION, where="cold_start.trainer"),
        steps=cold.steps,
    )


def reinforcement(system: System) -> Lesson:
    """Episodes of the policy, rewarded by the rubric. Raises ConfigError: nothing to train on."""
    if not system.policy.trainable:
        raise ConfigError(
            "training needs token ids and their logprobs, which this engine does not give; "
            "choose an engine that does, such as transformers"
        )
    recipe, replay = system.recipe, system.recipe.replay
    return Lesson(
        stage=Reinforce(
            tasks=system.world.train,
            count=recipe.rollout.tasks,
            seed=recipe.seed,
            policy=system.policy,
            environment=system.world.environment,
            plan=system.plan,
            limits=system.limits,
            rubric=system.rubric,
            credit=system.credit,
            readings=system.readings,
            frozen_spans=recipe.frozen_spans,
            replay=(
                Imitate(
                    demonstrations=_demonstrations(system),
                    codec=system.codec,
                    count=replay.items,
                    weight=replay.weight,
                    names=replay.names,
                    first=_replay_start(system),
                    ranks=system.ranks,
                )
                if replay.items
                else None
            ),
            probe=_probe(system),
            ranks=system.ranks,
        ),
        trainer=_trainer(
            system,
            _policy_trainer(recipe),
            algorithm(recipe.algorithm, system.parts).loss,
            where="trainer",
        ),
        steps=recipe.steps,
    )


def _replay_start(system: System) -> int:
    """In steps of the replay: behind what the cold start took."""
    cold, count = system.recipe.cold_start, system.recipe.replay.items
    return -(-cold.steps * cold.items // count)


# -- the parts ------------------------------------------------------------------------------------
def _supplies(
    recipe: Recipe, parts: Parts, isolation: Isolation | None, folders: tuple[Path, ...]
) -> Supplies:
    if recipe.tasks.path is None and recipe.tasks.format.type != "auto":
        raise ConfigError("tasks.format says how the rows of a file are written: set tasks.path")
    return Supplies(
        tools=tuple(
            recipe_tool(parts, tool, where=f"tools.{index}", isolation=isolation)
            for index, tool in enumerate(recipe.tools)
        ),
        tasks=_found(recipe.tasks.path, folders),
        corpus=_found(recipe.corpus.path, folders),
        format=make_format(recipe.tasks.format, parts),
        cache=cache_of(recipe.cache.dir),
    )


def _evaluated(recipe: Recipe, parts: Parts, supplies: Supplies, trained: World) -> World:
    """The world with `eval.world` laid over it. Raises ConfigError: other questions."""
    if not recipe.eval.world:
        return trained
    changed = replace(recipe.world, settings=merge(recipe.world.settings, recipe.eval.world))
    made: World = parts.make("world", changed, supplies, where="eval.world")
    return made.keeping_questions_of(trained, key="eval.world")


def _found(path: str | None, folders: tuple[Path, ...]) -> Path | None:
    return None if path is None else find(path, folders)


def _model(recipe: Recipe, world: World, folders: tuple[Path, ...]) -> LoadedModel:
    settings = recipe.model
    if settings.path:
        local = _found(settings.path, folders)
        return load(local if local and local.exists() else settings.path)
    lexicon = world.lexicon
    if lexicon is None:
        raise ConfigError(
            f"the world {world.name} has no lexicon to build a tiny policy from; set model.path "
            "to a model folder"
        )
    words = (*lexicon.words, *lexicon.names)
    called = tuple(recipe.codec.settings.get("tools", ()))
    tokenizer = build_tokenizer(words, context=settings.context, tools=called)
    sizes = {k: v for k, v in asdict(settings).items() if k not in ("path", "lora")}
    return LoadedModel(model=build_model(tokenizer, seed=recipe.seed, **sizes), tokenizer=tokenizer)


def _codec(recipe: Recipe, supplies: Supplies) -> Part:
    """The codec pauses where a reading is due, and calls the user's tools by their names."""
    tools = text_parameters(made().spec for made in supplies.tools)
    codec = _with(recipe.codec, tools=tools) if tools else recipe.codec
    return _with(codec, pauses=bool(recipe.readings))


def _plan(recipe: Recipe, chosen: Algorithm) -> dict[str, JSON]:
    size = recipe.rollout.group_size
    return {**chosen.plan, **({} if size is None else {"group_size": size})}


def _limits(recipe: Recipe, engine: Engine) -> Limits:
    rollout = recipe.rollout
    room = engine.context_length
    return Limits(
        max_turns=rollout.max_turns,
        max_tokens=min(rollout.max_tokens or room, room),
        max_new_tokens=rollout.max_new_tokens,
        max_observation_tokens=rollout.max_observation_tokens or room,
        max_parse_errors=rollout.max_parse_errors,
        step_seconds=rollout.step_seconds,
    )


def _probe(system: System) -> Probe | None:
    table, recipe = system.table, system.recipe
    if table is None:
        return None

    async def probe(tasks: Sequence[Task], step: int) -> Callable[[], object]:
        return await refresh(
            table,
            tasks,
            policy=system.policy,
            environment=system.world.environment,
            limits=system.limits,
            readings=system.readings,
            policy_hash=f"version-{system.engine.policy_version}",
            step=step,
            k=recipe.solvability.samples,
            seed=recipe.seed,
            max_age=recipe.solvability.refresh,
            ranks=system.ranks,
        )

    return probe


def _trainer(system: System, part: Part, loss_part: Part, *, where: str) -> Trainer:
    loss = system.parts.make("loss", loss_part, where="algorithm.loss")
    return system.parts.make(
        "trainer", part, system.model.model, loss, 0, system.ranks, where=where
    )


def _policy_trainer(recipe: Recipe) -> Part:
    """Scores tokens at the temperature they are sampled at. Raises ConfigError: it is set twice."""
    if "temperature" in recipe.trainer.settings:
        given = recipe.trainer.settings["temperature"]
        if given != recipe.sampling.temperature:
            raise ConfigError(
                "trainer.temperature is sampling.temperature; got "
                f"{given} and {recipe.sampling.temperature}: set sampling.temperature only"
            )
    if recipe.sampling.temperature == 1:
        return recipe.trainer
    return _with(recipe.trainer, temperature=recipe.sampling.temperature)


def _demonstrations(system: System) -> DemonstrationSource:
    if system.demonstrations is None:
        raise ConfigError(
            f"the world {system.world.name} has no demonstrations to imitate; set "
            "cold_start.steps=0 and replay.items=0, and give a trained model.path"
        )
    return system.demonstrations


def _check(system: System) -> None:
    """What would else be found when the run is under way."""
    recipe = system.recipe
    system.world.draw(recipe.eval.questions, recipe.eval.seed)
    if recipe.cold_start.steps or recipe.replay.items:
        _demonstrations(system).take(0, 1)
    if recipe.replay.items:
        check_names(_demonstrations(system), recipe.replay.names, key="replay.names")
    check_spans(system.codec, recipe.frozen_spans, key="frozen_spans")
    check_pauses(system.codec, recipe.readings, key="readings")
    if recipe.steps and system.table is not None:
        closed_book(system.policy)
    cold = _with(recipe.trainer, **recipe.cold_start.trainer)
    system.parts.resolve("trainer", cold, where="cold_start.trainer")


def _trackers(recipe: Recipe, parts: Parts) -> list[Resolved]:
    wanted = enumerate(recipe.trackers)
    return [parts.resolve("tracker", part, where=f"trackers.{index}") for index, part in wanted]


def _with(part: Part, **settings: JSON) -> Part:
    return replace(part, settings={**part.settings, **settings})


def _resolved(recipe: Recipe, parts: Parts, rubric: RubricTree) -> dict[str, JSON]:
    """The recipe as the run folder keeps it: defaults of parts and of the rubric written out."""
    chosen = algorithm(recipe.algorithm, parts)
    whole: dict[str, JSON] = to_data(recipe)
    named = {"world": recipe.world, "codec": recipe.codec, "engine": recipe.engine}
    whole |= {family: dict(parts.resolve(family, part).data) for family, part in named.items()}
    whole["trainer"] = dict(parts.resolve("trainer", _policy_trainer(recipe)).data)
    whole["algorithm"] = {
        "type": chosen.name,
        "credit": dict(parts.resolve("credit", chosen.credit).data),
        "loss": dict(parts.resolve("loss", chosen.loss).data),
        **_plan(recipe, chosen),
    }
    whole["trackers"] = [dict(found.data) for found in _trackers(recipe, parts)]
    whole["rubric"] = cast("dict[str, Any]", to_data(rubric.tree))
    return whole
