"""Algorithm names as data: a credit, a loss and a rollout plan, each setting overridable.

algorithm: dapo                                        the preset as it is
algorithm: {type: dapo, clip_high: .3, group_size: 16}  settings by name, wherever they belong
algorithm: {type: grpo, credit: leave-one-out}         another part in the preset's place
algorithm: {type: grpo, loss: {kl_coef: .04}}          settings by part
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

from outfox.core.config import Part, validate
from outfox.core.errors import ConfigError, did_you_mean
from outfox.core.parts import Parts, settings_type
from outfox.core.types import JSON

PLAN = ("group_size",)
"""Settings of the rollout plan that an algorithm may set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """What a name stands for. `plan` holds settings of the rollout plan."""

    name: str
    credit: Part
    loss: Part
    plan: Mapping[str, JSON]


def _preset(
    credit: Part, plan: Mapping[str, JSON] | None = None, **loss: JSON
) -> tuple[Part, Part, Mapping[str, JSON]]:
    return credit, Part(type="mixed", settings=loss), {"group_size": 8, **(plan or {})}


def _credit(name: str, **settings: JSON) -> Part:
    return Part(type=name, settings=settings)


PRESETS: Mapping[str, tuple[Part, Part, Mapping[str, JSON]]] = MappingProxyType(
    {
        # Shao et al. 2024; without KL, as TRL's default.
        "grpo": _preset(_credit("group-mean"), aggregation="grpo"),
        # Liu et al. 2025: no division by a spread, nor by a sequence's own length.
        "dr_grpo": _preset(_credit("group-mean", scale="none"), aggregation="dr_grpo"),
        # Yu et al. 2025: clip-higher and the mean over all tokens. Dynamic sampling is the rollout
        # plan's `redraw_until`, which is no setting but a function.
        "dapo": _preset(_credit("group-mean"), aggregation="dapo", clip_high=0.28),
        # Zheng et al. 2025: the ratio of whole sequences, whose clip range is far narrower.
        "gspo": _preset(
            _credit("group-mean"),
            aggregation="grpo",
            importance="sequence",
            clip_low=3e-4,
            clip_high=4e-4,
        ),
        # Liu et al. 2026: every part of the reward normalised by itself.
        "gdpo": _preset(_credit("decoupled", batch_scale=True), aggregation="grpo"),
        # Ahmadian et al. 2024.
        "rloo": _preset(_credit("leave-one-out"), aggregation="dr_grpo"),
        # Hu 2025, without a group; and its variant with the group's mean as baseline.
        "reinforce++": _preset(
            _credit("batch-scale", baseline="batch"), {"group_size": 1}, aggregation="dapo"
        ),
        "reinforce++-baseline": _preset(_credit("batch-scale"), aggregation="dapo"),
    }
)


def algorithm(part: Part, parts: Parts) -> Algorithm:
    """The preset with its overrides. Raises ConfigError for an unknown name or setting."""
    if part.type == "ppo":
        raise _needs_value_head("algorithm: 'ppo'")
    if part.type not in PRESETS:
        raise ConfigError(
            f"algorithm: none is called '{part.type}'.{did_you_mean(part.type, PRESETS)}"
        )
    credit, loss, plan = PRESETS[part.type]
    own = dict(part.settings)
    credit = _replaced(credit, own.pop("credit", None), where="algorithm.credit")
    loss = _replaced(loss, own.pop("loss", None), where="algorithm.loss")
    if credit.type == "gae":
        raise _needs_value_head("algorithm.credit: 'gae'")
    of_credit = _names(parts, "credit", credit)
    of_loss = _names(parts, "loss", loss)
    unknown = [key for key in own if key not in {*of_credit, *of_loss, *PLAN}]
    if unknown:
        known = {*of_credit, *of_loss, *PLAN, "credit", "loss"}
        raise ConfigError(
            f"algorithm: '{part.type}' has no setting '{unknown[0]}'."
            f"{did_you_mean(unknown[0], known)}"
        )
    return Algorithm(
        name=part.type,
        credit=_with(credit, {k: v for k, v in own.items() if k in of_credit}),
        loss=_with(loss, {k: v for k, v in own.items() if k in of_loss}),
        plan={**plan, **{k: v for k, v in own.items() if k in PLAN}},
    )


def _needs_value_head(what: str) -> ConfigError:
    return ConfigError(
        f"{what} needs a value head, which no trainer here has; "
        "'grpo' and 'rloo' take the siblings' totals as baseline instead"
    )


def _replaced(preset: Part, given: JSON, *, where: str) -> Part:
    """Another part where one is named, else the preset's with these settings."""
    if given is None:
        return preset
    if isinstance(given, dict) and "type" not in given:
        return _with(preset, cast("dict[str, JSON]", given))
    return validate(Part, given, where=where)


def _with(part: Part, settings: Mapping[str, JSON]) -> Part:
    return Part(type=part.type, settings={**part.settings, **settings})


def _names(parts: Parts, family: str, part: Part) -> frozenset[str]:
    factory = parts.load(family, part.type, where=f"algorithm.{family}")
    return frozenset(field.name for field in dataclasses.fields(settings_type(factory)))
