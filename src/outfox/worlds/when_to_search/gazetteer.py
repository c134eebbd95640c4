"""Records of countries and cities: what the world's facts are made of.

    source real (real.py) or synthetic (synthetic.py) ─▶ Gazetteer ─facts.py─▶ facts

Names are unambiguous: no two records share one, whatever the case, and no name is a value of
another kind.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Country:
    """One country. A field that no data gives is None."""

    name: str
    capital: str | None
    currency: str | None
    language: str | None
    population: int


@dataclass(frozen=True, slots=True, kw_only=True)
class City:
    """One city; `country` is a country's name."""

    name: str
    country: str
    population: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gazetteer:
    """Countries and cities, most populous first."""

    countries: tuple[Country, ...]
    cities: tuple[City, ...]
