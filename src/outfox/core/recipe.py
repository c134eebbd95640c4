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
    """Default: `outfox` in the user's cache folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSettings:
    """A file or folder of the user's."""

    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """Rows of the user's own."""

    path: str | None = None
    format: Annotated[Part, InFamily("format")] = field(default_factory=lambda: Part(type="auto"))
    """How the rows are written; `auto`: as their columns say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The policy's model: a folder or hub name, or a tiny one built from the world's words."""

    path: str | None = None
    hidden: PositiveInt = 128
    layers: PositiveInt = 4
    """Attention layers."""
    convolutions: NonNegativeInt = 0
    """Gated short convolutions before them; with some the model is an LFM2, else a Llama."""
    kernel: PositiveInt = 4
    """Tokens that such a convolution sees, its own included."""
    heads: PositiveInt = 4
    kv_heads: PositiveInt = 1
    intermediate: PositiveInt = 320
    context: Annotated[int, Field(ge=16)] = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingSettings:
    """How the policy's tokens are drawn while it trains."""

    temperature: PositiveFloat = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSettings:
    """How many episodes a step takes, and what each may use up."""

    tasks: PositiveInt = 24
    """Tasks per step; each is played by `group_size` siblings."""
    group_size: PositiveInt | None = None
    """Default: the algorithm's."""
    max_turns: PositiveInt = 6
    max_tokens: PositiveInt | None = None
    """Most tokens in one ledger; default: the model's context length."""
    max_new_tokens: PositiveInt = 64
    """Most policy tokens in one turn."""
    max_observation_tokens: PositiveInt | None = None
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
    """0 switches it off."""
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
    samples: PositiveInt = 2
    """Samples per question at temperature 1."""
    seed: int = 1
    before: bool = True
    greedy: bool = False
    """After training, also one sample per question at temperature 0."""
    world: Mapping[str, JSON] = field(default_factory=_nothing)
    """World settings that differ from the recipe's `world`, e.g. noise; the questions may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveSettings:
    """When checkpoints are written."""

    every: PositiveInt = 20
    """Steps between checkpoints; the last step always writes one."""
    keep: PositiveInt = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One run."""

    name: str
    seed: int = 0
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
    model: ModelSettings = field(default_factory=ModelSettings)
    codec: Annotated[Part, InFamily("codec")] = field(default_factory=lambda: Part(type="tags"))
    readings: Mapping[str, str] = field(default_factory=_confidence)
    """Span name to reading, e.g. `{draft: confidence}`; empty: no reading."""
    engine: Annotated[Part, InFamily("engine")] = field(
        default_factory=lambda: Part(type="transformers")
    )
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
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    cold_start: ColdStartSettings = field(default_factory=ColdStartSettings)
    eval: EvalSettings = field(default_factory=EvalSettings)
    save: SaveSettings = field(default_factory=SaveSettings)
