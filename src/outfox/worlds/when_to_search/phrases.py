"""The words of the world, in English and Chinese: data, no logic beyond joining.

Templates are lists of words with single spaces between them; `{e}` is the entity, `{v}` the value.
Each language joins the words with its own separator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

RELATIONS = ("capital", "currency", "language", "population", "country")
QUANTITIES = frozenset({"population"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """One language."""

    separator: str
    relations: Mapping[str, str]
    """The word of each relation, as thoughts and queries use it."""
    topic: str
    """How thoughts, queries and entries begin. The value follows the entity at once: what a tiny
    policy learns first is to look for what stood behind the same name before."""
    passages: Mapping[str, tuple[str, ...]]
    """Entries of an almanac: a note's own words, so that a tiny policy can learn to read."""
    earlier: tuple[str, ...]
    """An older count of a population; `{y}` its year."""
    later: tuple[str, ...]
    """The count that replaced it. Never the relation's word: the canonical query must miss it."""
    beside: tuple[str, ...]
    """Another thing that is latest about the entity, `{v}` a number: stands beside `later`."""
    changed: Mapping[str, tuple[str, ...]]
    sources: tuple[str, ...]
    """Who counts the people, where that is disputed."""
    disputed: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    """The first source, the second and the settling one; `{r}` is the relation or who speaks, `{t}`
    whom to ask next. The last is the longest and holds no word of a question, so that neither the
    entity nor the question finds it."""
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
    aside: str
    """How a note begins on what was not asked."""
    checked: tuple[str, str]
    """How a policy that checks its own draft finds it: right, wrong."""
    nothing: str
    failed: str
    stop: str

    def check(self, right: bool) -> str:
        return self.checked[0 if right else 1]

    def join(self, template: str, **values: str) -> str:
        """The template's text. Values that stand for several words carry their own separators."""
        return self.separator.join(word.format(**values) for word in template.split(" "))


def _entries(relations: Mapping[str, str], *forms: str) -> dict[str, tuple[str, ...]]:
    """Each form with `{r}` filled in, by relation."""
    return {
        relation: tuple(form.replace("{r}", word) for form in forms)
        for relation, word in relations.items()
    }


_ENGLISH = {relation: relation for relation in RELATIONS}
_CHINESE = {
    "capital": "首都",
    "currency": "货币",
    "language": "语言",
    "population": "人口",
    "country": "国家",
}

ENGLISH = Phrases(
    separator=" ",
    relations=_ENGLISH,
    topic="{r} of {e}",
    passages=_entries(
        _ENGLISH,
        "{r} of {e} {v} .",
        "From the atlas , {r} of {e} {v} .",
        "{r} of {e} {v} , says the yearbook .",
    ),
    earlier=(
        "Count of {y} , population of {e} {v} .",
        "population of {e} {v} , says the count of {y} .",
    ),
    later=(
        "latest of {e} {v} , says the count of {y} .",
        "From the count of {y} , latest of {e} {v} .",
    ),
    beside=(
        "{e} has {v} new schools , says the latest report .",
        "From the latest report , {e} has {v} new schools .",
    ),
    changed=_entries(
        _ENGLISH,
        "{r} of {e} {y} {v} .",
        "From the atlas , {r} of {e} {y} {v} .",
    ),
    sources=(
        "archive",
        "bureau",
        "census",
        "chronicle",
        "gazette",
        "ministry",
        "registry",
        "survey",
    ),
    disputed=(
        ("{r} of {e} {v} , {t} disagrees .", "{r} of {e} {v} , not so says {t} ."),
        ("{r} of {e} {v} , but {t} decides .", "{r} of {e} {v} , but rather ask {t} ."),
        (
            "{r} of {e} {v} , and with that all doubts end .",
            "{r} of {e} {v} , last word after all counts were compared .",
        ),
    ),
    questions={
        "capital": ("What is the capital of {e} ?", "Which city is the capital of {e} ?"),
        "currency": ("What is the currency of {e} ?", "Which currency is used in {e} ?"),
        "language": ("What is the main language of {e} ?", "Which language is used in {e} ?"),
        "population": (
            "What is the population of {e} ?",
            "How large is the population of {e} ?",
        ),
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
    aside="also",
    checked=("right", "wrong"),
    nothing="Nothing was found .",
    failed="The search failed .",
    stop="?",
)

CHINESE = Phrases(
    separator="",
    relations=_CHINESE,
    topic="{r} {e}",
    passages=_entries(
        _CHINESE,
        "{r} {e} {v} 。",
        "据 地图集 ， {r} {e} {v} 。",
        "{r} {e} {v} ， 据 年鉴 。",
    ),
    earlier=(
        "{y} 年 统计 ， 人口 {e} {v} 。",
        "人口 {e} {v} ， 据 {y} 年 统计 。",
    ),
    later=(
        "最新 {e} {v} ， 据 {y} 年 统计 。",
        "据 {y} 年 统计 ， 最新 {e} {v} 。",
    ),
    beside=(
        "{e} 有 {v} 所 新 学校 ， 据 最新 报告 。",
        "据 最新 报告 ， {e} 有 {v} 所 新 学校 。",
    ),
    changed=_entries(
        _CHINESE,
        "{r} {e} {y} {v} 。",
        "据 地图集 ， {r} {e} {y} {v} 。",
    ),
    sources=("档案馆", "统计局", "普查", "编年史", "公报", "内政部", "登记处", "调查"),
    disputed=(
        ("{r} {e} {v} ， {t} 有 异议 。", "{r} {e} {v} ， {t} 说 不对 。"),
        ("{r} {e} {v} ， 但 由 {t} 决定 。", "{r} {e} {v} ， 但 以 {t} 为准 。"),
        (
            "{r} {e} {v} ， 经 核对 全部 数据 ， 就此 定论 。",
            "{r} {e} {v} ， 今后 各方 都 以此 为 定论 。",
        ),
    ),
    questions={
        "capital": ("{e} 的 首都 是 哪里 ？", "{e} 的 首都 是 哪 座 城市 ？"),
        "currency": ("{e} 的 货币 是 什么 ？", "{e} 使用 什么 货币 ？"),
        "language": ("{e} 的 主要 语言 是 什么 ？", "{e} 使用 什么 语言 ？"),
        "population": ("{e} 的 人口 是 多少 ？", "{e} 有 多少 人口 ？"),
        "country": ("{e} 在 哪 个 国家 ？", "{e} 属于 哪 个 国家 ？"),
    },
    nested={"country": "{e} 所在 国家", "capital": "{e} 的 首都"},
    latest=("{e} 最新 的 人口 是 多少 ？", "{e} 最新 有 多少 人口 ？"),
    dated=("{y} 年 {q}", "截至 {y} 年 {q} ？"),
    cue="最新",
    unknown="未知",
    missing="没有",
    aside="另",
    checked=("对", "错"),
    nothing="没有 找到 。",
    failed="搜索 失败 。",
    stop="？",
)

PHRASES: Mapping[str, Phrases] = {"en": ENGLISH, "zh": CHINESE}
