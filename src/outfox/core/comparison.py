"""A comparison: one recipe in several variants, each trained with several seeds.

base: when-to-search            a recipe, by name or path
seeds: [0, 1, 2]
variants:                       what each changes, written as in a recipe
  default: {}
  outcome-only: {rubric: outcome_only}
against: outcome-only           what the others are set beside; the first where none is named
asks:                           what the result is asked, written down before it is known
  - {difference: accuracy, at_least: -.02}

outfox train NAME seeds=0 steps=20      other settings go to every variant
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from outfox.core.brief import SEEDS, is_brief
from outfox.core.config import (
    RECIPES,
    RecipeFile,
    apply_overrides,
    find_recipe,
    load_recipe,
    merge,
    validate,
)
from outfox.core.errors import ConfigError, did_you_mean
from outfox.core.types import JSON
from outfox.core.yaml import load_yaml

_OWN = ("seeds", "variants", "against")
"""Settings of the command line that choose among runs instead of changing them."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question to the result: a measure of each variant, or its difference or ratio to `against`,
    is at least or at most a number."""

    value: str | None = None
    difference: str | None = None
    ratio: str | None = None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def measure(self) -> str:
        return self.value or self.difference or self.ratio or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a comparison's file may say."""

    base: str
    variants: Mapping[str, Mapping[str, JSON]]
    seeds: tuple[int, ...] = (0, 1, 2)
    against: str | None = None
    asks: tuple[Ask, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonFile:
    """A comparison, checked, with what the command line changed."""

    name: str
    path: Path
    folder: Path
    """Where its runs go."""
    base: RecipeFile
    settings: tuple[str, ...]
    """`key.path=value` for every variant."""
    chosen: tuple[str, ...]
    """The command line's choice among the runs."""
    comparison: Comparison

    @property
    def against(self) -> str:
        """The variant that the others are set beside."""
        return self.comparison.against or next(iter(self.comparison.variants))

    @property
    def words(self) -> tuple[str, ...]:
        """What `outfox train` was given, but for folders."""
        name = self.name if self.path.parent == RECIPES else self.path.name
        settings = [text for text in self.settings if not text.startswith("cache.")]
        return (name, *self.chosen, *settings)

    @property
    def runs(self) -> Iterator[tuple[int, str]]:
        """(seed, variant) of every run, seed by seed: a first comparison is there early."""
        return (
            (seed, variant)
            for seed in self.comparison.seeds
            for variant in self.comparison.variants
        )

    def place(self, variant: str, seed: int) -> Path:
        """The run folder of a variant's seed."""
        return self.folder / f"{variant}-seed{seed}"

    def recipe(self, variant: str, seed: int) -> RecipeFile:
        """The recipe of one run."""
        changed = merge(self.base.data, dict(self.comparison.variants[variant]))
        data = apply_overrides(cast("dict[str, JSON]", changed), self.settings)
        data = apply_overrides(data, [f"seed={seed}"])
        run = {
            **cast("dict[str, JSON]", data.get("run") or {}),
            "dir": str(self.place(variant, seed)),
        }
        return replace(
            self.base,
            name=f"{self.name}-{variant}",
            folders=(self.path.parent, *self.base.folders),
            data={**data, "run": run},
        )


def load_comparison(name: str, overrides: Sequence[str] = ()) -> ComparisonFile | None:
    """A comparison by shipped name or path; None where the file is an ordinary recipe.

    `seeds=0,1`, `variants=NAME,NAME` and `against=NAME` choose runs, `run.dir` says where they go;
    every other setting is for all variants. Raises ConfigError.
    """
    path = find_recipe(name)
    written = load_yaml(path)
    if not isinstance(written, dict) or "variants" not in written:
        return None
    own = [text for text in overrides if text.partition("=")[0] in _OWN]
    place = [text for text in overrides if text.partition("=")[0] == "run.dir"]
    settings = tuple(text for text in overrides if text not in (*own, *place))
    seed = [text for text in settings if text.partition("=")[0] == "seed"]
    if seed:
        raise ConfigError(f"a comparison takes several seeds; got {seed[0]}: write seeds=0,1,2")
    comparison = validate(Comparison, dict(cast("dict[str, JSON]", written)), where=path.stem)
    comparison = _checked(_chosen(comparison, apply_overrides({}, own)))
    run = cast("dict[str, JSON]", apply_overrides({}, place).get("run", {}))
    folder = run.get("dir") or f"runs/{path.stem}"
    found = find_recipe(comparison.base, path.parent)
    return ComparisonFile(
        name=path.stem,
        path=path,
        folder=Path(str(folder)).expanduser(),
        base=load_recipe(found),
        settings=settings,
        chosen=tuple(own),
        comparison=comparison,
    )


def _chosen(comparison: Comparison, own: Mapping[str, JSON]) -> Comparison:
    """With the seeds and variants of the command line."""
    variants = comparison.variants
    if "variants" in own:
        names = _listed(own["variants"])
        for name in names:
            if name not in variants:
                raise ConfigError(
                    f"variants: no variant is called '{name}'.{did_you_mean(str(name), variants)}"
                )
        variants = {str(name): variants[str(name)] for name in names}
    against = own.get("against", comparison.against)
    if "variants" in own and "against" not in own and against not in variants:
        against = None
    seeds = _listed(own["seeds"]) if "seeds" in own else list(comparison.seeds)
    wrong = [seed for seed in seeds if not str(seed).removeprefix("-").isdecimal()]
    if wrong:
        raise ConfigError(f"seeds: are whole numbers, not {wrong[0]!r}; write seeds=0,1,2")
    seeds = seeds[:SEEDS] if is_brief() else seeds
    return replace(
        comparison, variants=variants, against=against, seeds=tuple(int(str(s)) for s in seeds)
    )


def _listed(value: JSON) -> list[JSON]:
    """A list, or a text with commas, or one value."""
    if isinstance(value, list):
        return cast("list[JSON]", value)
    return [part.strip() for part in str(value).split(",")]


def _checked(comparison: Comparison) -> Comparison:
    """Raises ConfigError: nothing to compare, or names that cannot be."""
    if not comparison.variants or not comparison.seeds:
        raise ConfigError("a comparison needs a variant and a seed; name at least one of each")
    if len(set(comparison.seeds)) < len(comparison.seeds):
        raise ConfigError(f"seeds: each is run once; got {list(comparison.seeds)}: remove repeats")
    for name, settings in comparison.variants.items():
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"variants: a name becomes a folder's, so it has letters, digits, - and _; "
                f"'{name}' has others: rename it"
            )
        if set(settings) & {"seed", "run"}:
            raise ConfigError(
                f"variants.{name}: seeds and folders belong to the comparison; remove seed and run"
            )
    if comparison.against not in (None, *comparison.variants):
        raise ConfigError(
            f"against: no variant is called '{comparison.against}'."
            f"{did_you_mean(str(comparison.against), comparison.variants)}"
        )
    for index, ask in enumerate(comparison.asks):
        of = (ask.value, ask.difference, ask.ratio)
        if sum(each is not None for each in of) != 1 or (ask.at_least is None) == (
            ask.at_most is None
        ):
            raise ConfigError(
                f"asks.{index}: has one of value, difference, ratio and one of at_least, at_most; "
                "for example {difference: accuracy, at_least: -.02}"
            )
    return comparison
