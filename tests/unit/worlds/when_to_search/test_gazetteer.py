from collections import Counter

import pytest

from outfox.core.errors import ConfigError
from outfox.worlds.when_to_search import Sizes, make
from outfox.worlds.when_to_search.chinese_names import chinese_name
from outfox.worlds.when_to_search.real import real_gazetteer
from outfox.worlds.when_to_search.synthetic import synthetic_gazetteer


def gazetteer(language: str, source: str):
    if source == "real":
        return real_gazetteer(language=language, countries=190, cities=640)
    return synthetic_gazetteer(language=language, countries=190, cities=640, seed=0)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("source", ["real", "synthetic"])
def test_names_are_unambiguous_and_references_hold(language, source):
    made = gazetteer(language, source)
    assert (len(made.countries), len(made.cities)) == (190, 640)
    countries = [country.name for country in made.countries]
    cities = {city.name: city for city in made.cities}
    values = {c.currency for c in made.countries} | {c.language for c in made.countries}
    counts = Counter(name.casefold() for name in (*countries, *cities, *filter(None, values)))
    assert [name for name, n in counts.items() if n > 1] == []
    for country in made.countries:
        assert country.capital is None or cities[country.capital].country == country.name
    assert {city.country for city in made.cities} <= set(countries)
    for records in (made.countries, made.cities):
        sizes = [record.population for record in records]
        assert sizes == sorted(sizes, reverse=True)


def test_real_records_are_right_in_both_languages():
    english, chinese = (gazetteer(language, "real") for language in ("en", "zh"))
    peru = next(country for country in english.countries if country.name == "Peru")
    assert (peru.capital, peru.currency, peru.language) == ("Lima", "Peruvian Sol", "Spanish")
    japan = next(country for country in chinese.countries if country.name == "日本")
    assert (japan.capital, japan.currency, japan.language) == ("东京", "日元", "日语")
    assert {"上海", "巴黎", "维也纳", "内罗毕"} <= {city.name for city in chinese.cities}


def test_only_states_are_countries():
    names = {country.name for country in gazetteer("en", "real").countries}
    assert not names & {"Hong Kong", "Puerto Rico", "Greenland", "Netherlands Antilles"}


@pytest.mark.parametrize(
    ("alternates", "name"),
    [
        (["SHA", "上海", "上海市", "中国上海", "沪", "상하이"], "上海"),
        (["約翰尼斯堡", "约翰内斯堡"], "约翰内斯堡"),
        (["維也納"], "维也纳"),
        (["深セン市", "さいたま市"], None),
        (["Lima"], None),
    ],
)
def test_the_chinese_name_is_the_simplified_one_most_agree_on(alternates, name):
    assert chinese_name(alternates) == name


def test_synthetic_worlds_differ_by_seed_and_grow():
    one, two = (
        synthetic_gazetteer(language="en", countries=30, cities=90, seed=seed) for seed in (0, 1)
    )
    assert one == synthetic_gazetteer(language="en", countries=30, cities=90, seed=0)
    assert one.countries != two.countries
    large = synthetic_gazetteer(language="zh", countries=400, cities=2000, seed=0)
    assert (len(large.countries), len({city.name for city in large.cities})) == (400, 2000)


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ConfigError, match="at least 20 countries"):
        make(entities=Sizes(countries=5, cities=90))
    with pytest.raises(ConfigError, match="a city for each"):
        make(entities=Sizes(countries=50, cities=40))
