"""Units that convert into each other, by the names people write (English, Chinese, symbols)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from outfox.rewards.matchers.normalise import unicode


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What is measured, and how many of the dimension's base unit one of these is."""

    dimension: str
    factor: Decimal


_NAMES: Mapping[str, Mapping[str, str]] = {
    "ratio": {"0.01": "% percent per cent pct 百分", "0.001": "‰ permille"},
    "mass": {
        "0.000001": "μg mcg ug microgram micrograms 微克",
        "0.001": "mg milligram milligrams 毫克",
        "1": "g gram grams 克",
        "1000": "kg kilogram kilograms 千克 公斤",
        "1000000": "t tonne tonnes 吨",
    },
    "length": {
        "0.001": "mm millimetre millimetres millimeter millimeters 毫米",
        "0.01": "cm centimetre centimetres centimeter centimeters 厘米",
        "1": "m metre metres meter meters 米",
        "1000": "km kilometre kilometres kilometer kilometers 千米 公里",
        "1609.344": "mi mile miles 英里",
    },
    "area": {
        "1": "m2 sqm 平方米",
        "10000": "ha hectare hectares 公顷",
        "1000000": "km2 sqkm 平方公里 平方千米",
    },
    "volume": {"0.001": "ml millilitre milliliter 毫升", "1": "l litre liter litres liters 升"},
    "usd": {"1": "$ us$ usd dollar dollars 美元"},
    "eur": {"1": "€ eur euro euros 欧元"},
    "gbp": {"1": "£ gbp pound pounds 英镑"},
    "cny": {"1": "rmb cny yuan 元 人民币 人民币元"},
    "yen or yuan": {"1": "¥"},
    "people": {"1": "people persons inhabitants 人"},
}
_PHRASES = {
    "square kilometres": "km2",
    "square kilometers": "km2",
    "sq km": "km2",
    "km^2": "km2",
    "square metres": "m2",
    "square meters": "m2",
    "m^2": "m2",
    "per cent": "%",
    "us dollars": "usd",
}
_UNITS = {
    name: Unit(dimension=dimension, factor=Decimal(factor))
    for dimension, names in _NAMES.items()
    for factor, listed in names.items()
    for name in listed.split()
}
_UNITLESS = Unit(dimension="", factor=Decimal(1))


def unit_named(text: str) -> Unit:
    """The unit of that name. An unknown name is a dimension of its own; no name is no unit."""
    key = unicode(text)
    if not key:
        return _UNITLESS
    key = _PHRASES.get(key, key)
    return _UNITS.get(key) or Unit(dimension=f"named {key}", factor=Decimal(1))


def is_known(text: str) -> bool:
    """Is this the name of a unit in the table?"""
    key = unicode(text)
    return key in _UNITS or key in _PHRASES
