"""What a recipe may say. One YAML per run, validated against these dataclasses.

Defaults are those of any run; the shipped recipes in `outfox/recipes` say what differs. A field of
type `Part` names an interchangeable part (`{type: NAME, ...settings}`); its settings are validated
against the part itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from outfox.core.config import InFamily, Part
from outfox.core.types import JSON


def _nothing() -> dict[str, JSON]:
    return {}


def _confidence() -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Where the run folder goes."""

    dir: str | None = None
    """Folder to create; default: the next free `runs/<recipe>-NNN`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """What outlives a run: cold-started weights, keyed by a hash of everything that made them."""

    dir: str | None = None
    """Where cold-started weights are kept; default: `outfox` in the user's cache folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSettings:
    """A file of the user's."""

    path: str | None = None
    """Passages of your own, for the world `rows`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """Rows of the user's own."""

    path: str | None = None
    """Rows of your own, for the world `rows`."""
    format: Annotated[Part, InFamily("format")] = field(default_factory=lambda: Part(type="auto"))
    """How the rows are written; `auto`: as their columns say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraSettings:
    """Low-rank adapters that are trained in place of the model's own weights (peft)."""

    rank: PositiveInt = 16
    """Rank of each adapter."""
    alpha: PositiveFloat = 32.0
    """The adapter's product is multiplied by alpha / rank."""
    targets: tuple[str, ...] = ()
    """Linear maps that get one, by last name, e.g. `[q_proj, v_proj]`; empty: all but the head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCodeSettings:
    """Where the user's own signals and tools run."""

    isolated: bool = True
    """In worker processes that can be stopped; false: in the run's own, e.g. for a debugger."""
    seconds: PositiveFloat = 20.0
    """Deadline of one call; a call that is too late is tried once more."""
    memory_gb: PositiveFloat = 4.0
    """What a worker process may take beyond the code it has loaded."""
    workers: PositiveInt = 8
    """Most worker processes, each with one call at a time; they start when they are needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The policy's model: a folder or hub name, or a tiny one built from the world's words."""

    path: str | None = None
    """A model folder or hub name; default: a tiny model built from the world's words."""
    lora: LoraSettings | None = None
    """Train adapters instead of the whole model; null: the whole model."""
    hidden: PositiveInt = 128
    """Width of the tiny model."""
    layers: PositiveInt = 4
    """Attention layers."""
    convolutions: NonNegativeInt = 0
    """Gated short convolutions before them. With some the model is an LFM2, else a Llama, which
    takes three times as many steps to learn to read and to copy."""
    kernel: PositiveInt = 4
    """Tokens that such a convolution sees, its own included."""
    heads: PositiveInt = 4
    """Its attention heads."""
    kv_heads: PositiveInt = 1
    """Its key-value heads."""
    intermediate: PositiveInt = 320
    """Width inside its MLP."""
    context: Annotated[int, Field(ge=16)] = 512
    """Its context length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingSettings:
    """How the policy's tokens are drawn while it trains."""

    temperature: PositiveFloat = 1.0
    """Of training episodes, and what the trainer scores them at; evaluations draw at 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSettings:
    """How many episodes a step takes, and what each may use up."""

    tasks: PositiveInt = 24
    """Tasks per step; each is played by `group_size` siblings."""
    group_size: PositiveInt | None = None
    """Siblings per task; default: the algorithm's."""
    max_turns: PositiveInt = 6
    """Policy messages per episode."""
    max_tokens: PositiveInt | None = None
    """Most tokens in one ledger; default: the model's context length."""
    max_new_tokens: PositiveInt = 64
    """Most policy tokens in one turn."""
    max_observation_tokens: PositiveInt | None = None
    """Most tokens of one observation; documents beyond are cut. Default: no limit."""
    max_parse_errors: NonNegativeInt = 0
    """Malformed turns that are answered with a message before the episode ends."""
    step_seconds: PositiveFloat = 120.0
    """Deadline of one environment step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySettings:
    """Demonstrations mixed into each policy update, so that known facts do not fade."""

    items: NonNegativeInt = 0
    """Demonstrations per step; 0 switches replay off."""
    weight: NonNegativeFloat = 0.1
    """Weight of their loss beside the policy loss."""
    names: tuple[str, ...] = ("closed_book", "reading")
    """Which kinds of demonstration are replayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvabilitySettings:
    """Where the rubric learns which questions need no search."""

    source: Literal["probe", "world"] = "probe"
    """`probe`: closed-book samples of the policy itself; `world`: the world's own label."""
    samples: PositiveInt = 8
    """Closed-book samples per task (K)."""
    refresh: NonNegativeInt = 0
    """Probe a step's tasks again when their reading is older than this many steps; 0: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStartSettings:
    """Imitation of the world's demonstrations before reinforcement; the result is cached."""

    steps: NonNegativeInt = 0
    """Imitation steps before reinforcement; 0 switches it off."""
    items: PositiveInt = 64
    """Demonstrations per step."""
    trainer: Mapping[str, JSON] = field(default_factory=_nothing)
    """Trainer settings that differ from the recipe's `trainer`."""
    gates: bool = True
    """Measure the gates (recall, copy, found, missing, decision AUROC) and warn where one fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalSettings:
    """Held-out evaluation before and after training."""

    questions: PositiveInt = 1200
    """Held-out questions."""
    samples: PositiveInt = 2
    """Samples per question at temperature 1."""
    seed: int = 1
    """Of the draw."""
    before: bool = True
    """Evaluate before reinforcement, too."""
    greedy: bool = False
    """After training, also one sample per question at temperature 0."""
    world: Mapping[str, JSON] = field(default_factory=_nothing)
    """World settings that differ from the recipe's `world`, e.g. `{noise: {error: .1}}`; the
    questions stay the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveSettings:
    """When checkpoints are written."""

    every: PositiveInt = 20
    """Steps between checkpoints; the last step always writes one."""
    keep: PositiveInt = 2
    """Checkpoints kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One run."""

    name: str
    """Name of the run; a file without one takes the file's name."""
    seed: int = 0
    """All randomness of the run is derived from it."""
    steps: NonNegativeInt = 80
    """Reinforcement steps."""
    threads: PositiveInt = 1
    """Torch threads; part of what makes two runs the same bit for bit."""
    processes: PositiveInt = 1
    """Processes that share rollouts and gradients; part of what makes two runs the same, too."""
    run: RunSettings = field(default_factory=RunSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    world: Annotated[Part, InFamily("world")]
    """What the policy acts in."""
    tasks: TaskSettings = field(default_factory=TaskSettings)
    corpus: PathSettings = field(default_factory=PathSettings)
    tools: tuple[Annotated[Part, InFamily("tool")], ...] = ()
    """Tools besides the world's own."""
    user_code: UserCodeSettings = field(default_factory=UserCodeSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    codec: Annotated[Part, InFamily("codec")] = field(default_factory=lambda: Part(type="tags"))
    """How the policy writes an action."""
    readings: Mapping[str, str] = field(default_factory=_confidence)
    """Span name to reading, e.g. `{draft: confidence}`; empty: no reading."""
    engine: Annotated[Part, InFamily("engine")] = field(
        default_factory=lambda: Part(type="transformers")
    )
    """What generates tokens."""
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    rollout: RolloutSettings = field(default_factory=RolloutSettings)
    rubric: JSON = "default"
    """A preset's name, a path, or the tree itself."""
    solvability: SolvabilitySettings = field(default_factory=SolvabilitySettings)
    algorithm: Part = field(default_factory=lambda: Part(type="grpo"))
    """A preset of credit, loss and rollout plan; its settings override the preset's."""
    frozen_spans: tuple[str, ...] = ()
    """Spans that the policy gradient does not touch."""
    trainer: Annotated[Part, InFamily("trainer")] = field(
        default_factory=lambda: Part(type="local")
    )
    """What owns weights and optimiser."""
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    cold_start: ColdStartSettings = field(default_factory=ColdStartSettings)
    eval: EvalSettings = field(default_factory=EvalSettings)
    save: SaveSettings = field(default_factory=SaveSettings)
    trackers: tuple[Annotated[Part, InFamily("tracker")], ...] = ()
    """Where else the metrics of each step are shown; the run folder holds them in any case."""
