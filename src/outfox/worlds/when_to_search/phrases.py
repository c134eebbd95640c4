"""The words of the world, in English and Chinese: data, no logic beyond joining.

Templates are lists of words with single spaces between them; `{e}` is the entity, `{v}` the value.
Each language joins the words with its own separator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

RELATIONS = ("capital", "currency", "language", "population", "area", "country")
QUANTITIES = frozenset({"population", "area"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """One language."""

    separator: str
    relations: Mapping[str, str]
    """The word of each relation, as thoughts and queries use it."""
    passages: Mapping[str, tuple[str, ...]]
    earlier: tuple[str, ...]
    """An older count of a population; `{y}` its year."""
    later: tuple[str, ...]
    """The count that replaced it. Never the relation's word: the canonical query must miss it."""
    beside: tuple[str, ...]
    """Another thing that is latest about the entity, `{v}` a number: stands beside `later`."""
    changed: Mapping[str, tuple[str, ...]]
    questions: Mapping[str, tuple[str, ...]]
    nested: Mapping[str, str]
    """The entity of a two-hop question, by the relation of its first hop."""
    latest: tuple[str, ...]
    """Questions that ask for the latest count."""
    dated: tuple[str, str]
    """A question as of a year: the year before it, the year after it. `{q}` is the question."""
    cue: str
    unknown: str
    missing: str
    nothing: str
    failed: str
    stop: str

    def join(self, template: str, **values: str) -> str:
        """The template's text. Values that stand for several words carry their own separators."""
        return self.separator.join(word.format(**values) for word in template.split(" "))


ENGLISH = Phrases(
    separator=" ",
    relations={relation: relation for relation in RELATIONS},
    passages={
        "capital": (
            "The capital of {e} is {v} .",
            "In {e} the capital is {v} .",
            "{e} has its capital in {v} .",
        ),
        "currency": (
            "The currency of {e} is the {v} .",
            "{e} has as its currency the {v} .",
            "In {e} the currency is the {v} .",
        ),
        "language": (
            "The main language of {e} is {v} .",
            "In {e} the first language is {v} .",
            "People in {e} speak the language {v} .",
        ),
        "population": (
            "The population of {e} is {v} .",
            "{e} has a population of {v} .",
            "In {e} the population is {v} .",
        ),
        "area": (
            "The area of {e} is {v} km2 .",
            "{e} has an area of {v} km2 .",
        ),
        "country": (
            "{e} is a city in the country {v} .",
            "The city {e} lies in the country {v} .",
            "{e} belongs to the country {v} .",
        ),
    },
    earlier=(
        "In {y} the population of {e} was {v} .",
        "{e} had in {y} a population of {v} .",
    ),
    later=(
        "The latest count of {y} for {e} finds {v} people .",
        "By the latest count of {y} , {e} has {v} people .",
    ),
    beside=(
        "The latest report from {e} tells of {v} new schools .",
        "In the latest report {e} has {v} new schools .",
    ),
    changed={
        "capital": (
            "Since {y} the capital of {e} is {v} .",
            "In {y} {e} moved its capital to {v} .",
        ),
        "currency": (
            "Since {y} the currency of {e} is the {v} .",
            "In {y} {e} changed its currency to the {v} .",
        ),
        "language": (
            "Since {y} the main language of {e} is {v} .",
            "In {y} {e} changed its main language to {v} .",
        ),
    },
    questions={
        "capital": ("What is the capital of {e} ?", "Which city is the capital of {e} ?"),
        "currency": ("What is the currency of {e} ?", "Which currency is used in {e} ?"),
        "language": ("What is the main language of {e} ?", "Which language is used in {e} ?"),
        "population": (
            "What is the population of {e} ?",
            "How large is the population of {e} ?",
        ),
        "area": ("What is the area of {e} ?", "How large is the area of {e} ?"),
        "country": ("In which country is {e} ?", "Which country does {e} belong to ?"),
    },
    nested={"country": "the country of {e}", "capital": "the capital of {e}"},
    latest=(
        "What is the latest population of {e} ?",
        "How large is the latest population of {e} ?",
    ),
    dated=("In {y} , {q}", "{q} in {y} ?"),
    cue="latest",
    unknown="unknown",
    missing="missing",
    nothing="Nothing was found .",
    failed="The search failed .",
    stop="?",
)

CHINESE = Phrases(
    separator="",
    relations={
        "capital": "首都",
        "currency": "货币",
        "language": "语言",
        "population": "人口",
        "area": "面积",
        "country": "国家",
    },
    passages={
        "capital": ("{e} 的 首都 是 {v} 。", "在 {e} 首都 是 {v} 。", "{e} 的 首都 设在 {v} 。"),
        "currency": (
            "{e} 的 货币 是 {v} 。",
            "{e} 使用 的 货币 叫 {v} 。",
            "在 {e} 货币 是 {v} 。",
        ),
        "language": (
            "{e} 的 主要 语言 是 {v} 。",
            "在 {e} 主要 语言 是 {v} 。",
            "{e} 的 人们 使用 的 语言 是 {v} 。",
        ),
        "population": ("{e} 的 人口 是 {v} 。", "{e} 有 人口 {v} 。", "{e} 的 人口 约 为 {v} 。"),
        "area": ("{e} 的 面积 是 {v} 平方公里 。", "{e} 的 面积 约 为 {v} 平方公里 。"),
        "country": (
            "{e} 是 国家 {v} 的 城市 。",
            "{e} 所在 的 国家 是 {v} 。",
            "城市 {e} 属于 的 国家 是 {v} 。",
        ),
    },
    earlier=("{y} 年 {e} 的 人口 是 {v} 。", "{e} 在 {y} 年 有 人口 {v} 。"),
    later=(
        "{y} 年 最新 的 统计 表明 {e} 有 {v} 人 。",
        "根据 {y} 年 最新 的 统计 {e} 住 着 {v} 人 。",
    ),
    beside=(
        "最新 的 报告 表明 {e} 有 {v} 所 新 学校 。",
        "{e} 最新 的 报告 提到 {v} 所 新 学校 。",
    ),
    changed={
        "capital": ("{y} 年 起 {e} 的 首都 是 {v} 。", "{e} 在 {y} 年 把 首都 改为 {v} 。"),
        "currency": ("{y} 年 起 {e} 的 货币 是 {v} 。", "{e} 在 {y} 年 把 货币 改为 {v} 。"),
        "language": (
            "{y} 年 起 {e} 的 主要 语言 是 {v} 。",
            "{e} 在 {y} 年 把 主要 语言 改为 {v} 。",
        ),
    },
    questions={
        "capital": ("{e} 的 首都 是 哪里 ？", "{e} 的 首都 是 哪 座 城市 ？"),
        "currency": ("{e} 的 货币 是 什么 ？", "{e} 使用 什么 货币 ？"),
        "language": ("{e} 的 主要 语言 是 什么 ？", "{e} 使用 什么 语言 ？"),
        "population": ("{e} 的 人口 是 多少 ？", "{e} 有 多少 人口 ？"),
        "area": ("{e} 的 面积 是 多少 ？", "{e} 的 面积 有 多 大 ？"),
        "country": ("{e} 在 哪 个 国家 ？", "{e} 属于 哪 个 国家 ？"),
    },
    nested={"country": "{e} 所在 国家", "capital": "{e} 的 首都"},
    latest=("{e} 最新 的 人口 是 多少 ？", "{e} 最新 有 多少 人口 ？"),
    dated=("{y} 年 {q}", "截至 {y} 年 {q} ？"),
    cue="最新",
    unknown="未知",
    missing="没有",
    nothing="没有 找到 。",
    failed="搜索 失败 。",
    stop="？",
)

PHRASES: Mapping[str, Phrases] = {"en": ENGLISH, "zh": CHINESE}
