"""A made-up gazetteer of any size: syllable names, the same schema."""

from __future__ import annotations

import random

from outfox.core.seeding import rng
from outfox.worlds.when_to_search.gazetteer import City, Country, Gazetteer

_ONSETS = "b br d dr f g gr h j k kl l m n p pr r s sh st t tr v w z"
_VOWELS = "a e i o u ai au ei ia oa"
_ENDS = ("", "", "", "n", "r", "l", "s", "m")
_HAN = (
    "阿巴贝波布达德迪多法菲盖戈哈赫基卡科克拉莱里卢罗马梅米莫纳内尼诺帕佩萨塞索塔特托瓦维亚伊尤扎泽"
)


def synthetic_gazetteer(*, language: str, countries: int, cities: int, seed: int) -> Gazetteer:
    """Populations fall off by rank as real ones do; several countries share a currency."""
    draw = rng(seed, "gazetteer", language)
    name = _Namer(draw, chinese=language == "zh")
    currencies = [name("元" if language == "zh" else "") for _ in range(max(countries * 2 // 3, 2))]
    languages = [name("语" if language == "zh" else "") for _ in range(max(countries // 2, 2))]
    names = [name() for _ in range(countries)]
    share = max(cities // countries, 1)
    towns: list[City] = []
    states: list[Country] = []
    for rank, country in enumerate(names):
        population = int(1.4e9 / (rank + 1) ** 1.1 * draw.uniform(0.7, 1.3)) + 100_000
        own = share + (rank < cities - share * countries)
        sizes = sorted(
            (population * 10 ** draw.uniform(-3, -0.5) for _ in range(own)), reverse=True
        )
        built = [City(name=name(), country=country, population=int(size)) for size in sizes]
        towns += built
        states.append(
            Country(
                name=country,
                capital=draw.choice(built).name,
                currency=draw.choice(currencies),
                language=draw.choice(languages),
                population=population,
            )
        )
    return Gazetteer(
        countries=tuple(sorted(states, key=lambda state: (-state.population, state.name))),
        cities=tuple(sorted(towns, key=lambda town: (-town.population, town.name))),
    )


class _Namer:
    """Makes names, no two alike."""

    def __init__(self, draw: random.Random, *, chinese: bool) -> None:
        self._draw = draw
        self._chinese = chinese
        self._taken: set[str] = set()

    def __call__(self, ending: str = "") -> str:
        while True:
            name = self._syllables(self._draw.choice((2, 3, 3, 4) if self._chinese else (2, 2, 3)))
            if name not in self._taken:
                self._taken.add(name)
                return name + ending

    def _syllables(self, count: int) -> str:
        if self._chinese:
            return "".join(self._draw.choice(_HAN) for _ in range(count))
        parts = [
            self._draw.choice(_ONSETS.split()) + self._draw.choice(_VOWELS.split())
            for _ in range(count)
        ]
        return ("".join(parts) + self._draw.choice(_ENDS)).capitalize()
