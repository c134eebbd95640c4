"""Markdown tables of one comparison or one run, in English and Chinese.

Tables      comparison.json                     every measure, asks, differences, kinds, seeds
RunTables   what fill_results.py keeps of a run  main measures, kinds, gates
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from outfox.evaluation.asks import fixed, standing
from outfox.evaluation.gates import AT_LEAST, DECISION_UNDER
from outfox.workbench.report.comparison import NAMES, hops, shown

Content = Mapping[str, Any]

CHINESE: Mapping[str, str] = {
    "accuracy": "正确率",
    "j": "J",
    "over_search": "多余搜索率",
    "under_search": "漏搜率",
    "necessity_precision": "搜索必要率",
    "necessity_recall": "该搜时搜到（召回）",
    "abstain_right": "对无答案问题承认不知道",
    "abstain_false": "对有答案问题误称不知道",
    "wrong": "答错且未承认不知道",
    "closed_book_recall": "闭卷回忆率",
    "calls": "每题搜索次数",
    "calls_per_hop": "每跳搜索次数",
    "calls_known": "已知事实的搜索次数",
    "calls_needed": "未知事实的搜索次数",
    "conflict": "处理矛盾",
    "verified_conflict": "查证矛盾",
    "recovery": "调用失败后答对",
    "changed_queries": "失败后换了问法",
    "followed_poison": "采信投毒值",
}
WORDS: Mapping[str, tuple[str, str]] = {
    "kind": ("kind", "类别"),
    "run": ("run", "运行"),
    "minutes": ("minutes", "分钟"),
    "greedy": (", greedy", "（贪心）"),
    "asked": ("asked", "要求"),
    "ratio": ("Searches, ratio", "搜索次数之比"),
    "seed": ("seed", "种子"),
    "before": ("before", "训练前"),
    "after": ("after", "训练后"),
    "interval": ("95 %", "95 % 区间"),
    "at temperature 0": ("greedy", "贪心"),
    "gate": ("gate", "门槛"),
    "measured": ("measured", "实测"),
    "wanted": ("should be", "要求"),
    "at least": ("at least {:g}", "至少 {:g}"),
    "under": ("under {:g}", "低于 {:g}"),
    "difference": (", less {}", "，与 {} 之差"),
    "of": (" over {}", "，与 {} 之比"),
    "holds": ("holds", "成立"),
    "holds on average": ("holds on average", "均值成立"),
    "does not hold": ("does not hold", "不成立"),
    "about": (
        "{questions:,} held-out questions on {facts:,} facts, {samples} samples each at "
        "temperature 1; seeds {seeds}; {steps} steps; 95 % intervals draw facts and seeds anew."
        "{hops} `{command}`",
        "{questions:,} 个留出问题，涉及 {facts:,} 条事实，每题在温度 1 下采样 {samples} 次；"
        "种子 {seeds}；{steps} 步；95 % 区间对事实和种子重新抽样。{hops}`{command}`",
    ),
    "hops": (
        " One search per hop, always, would take {:.2f} searches a question.",
        "每跳必搜一次则每题要搜 {:.2f} 次。",
    ),
    "run about": (
        "{questions:,} held-out questions, {samples} samples each at temperature 1; seed {seed}; "
        "{steps} steps; {minutes:.1f} minutes, processes: {processes}{cold}. `{command}`",
        "{questions:,} 个留出问题，每题在温度 1 下采样 {samples} 次；种子 {seed}；{steps} 步；"
        "共 {minutes:.1f} 分钟，进程数 {processes}{cold}。`{command}`",
    ),
    "cold start made": (", cold start included", "，含冷启动"),
    "cold start cached": (", cold start from the cache", "，冷启动取自缓存"),
}
RUN_ROWS = (
    "accuracy",
    "necessity_recall",
    "over_search",
    "under_search",
    "j",
    "abstain_right",
    "abstain_false",
    "wrong",
    "closed_book_recall",
    "calls",
)
"""What of a run is shown, in order."""


class Language:
    """English or Chinese."""

    def __init__(self, *, chinese: bool) -> None:
        self.chinese = chinese

    def word(self, key: str) -> str:
        return WORDS[key][self.chinese]

    def name(self, measure: str) -> str:
        return CHINESE.get(measure, NAMES[measure][0]) if self.chinese else NAMES[measure][0]

    def span(self, low: float, high: float, digits: int = 2) -> str:
        return f"{fixed(low, digits)} {'至' if self.chinese else 'to'} {fixed(high, digits)}"


class Tables:
    """Markdown tables of one comparison in one language."""

    def __init__(self, content: Content, language: Language) -> None:
        self.content, self.language = content, language
        self.word, self.name = language.word, language.name
        self.variants: Mapping[str, Any] = content["variants"]

    def cell(self, found: Content | None, digits: int = 2) -> str:
        if found is None:
            return "–"
        value, low, high = (found[key] for key in ("value", "low", "high"))
        if low is None or high is None:
            return fixed(value, digits)
        return f"{fixed(value, digits)} ({self.language.span(low, high, digits)})"

    def measures(self) -> list[str]:
        """Every measure after training, and where the numbers are from."""
        of = list(self.variants.values())
        rows = [
            [self.name(key), *(self.cell(each["after"].get(key)) for each in of)]
            for key in shown(each["after"] for each in of)
        ]
        for key in ("accuracy", "j", "calls") if all("greedy" in each for each in of) else ():
            cells = [self.cell(each["greedy"].get(key)) for each in of]
            rows.append([self.name(key) + self.word("greedy"), *cells])
        each = hops(self.variants)
        about = {key: self.content[key] for key in ("questions", "facts", "samples", "steps")}
        text = self.word("about").format(
            **about,
            seeds=", ".join(map(str, self.content["seeds"])),
            hops="" if each is None else self.word("hops").format(each),
            command=self.content["command"],
        )
        return [*table(["", *self.variants], rows), "", text]

    def asks(self) -> list[str]:
        """What the comparison was asked, a column per variant."""
        found: dict[tuple[str, str], dict[str, str]] = {}
        for row in self.content["asks"]:
            joined = {"value": "", "difference": self.word("difference"), "ratio": self.word("of")}
            label = self.name(row["measure"]) + joined[row["of"]].format(self.content["against"])
            at_least = "at_least" in row
            bound = f"≥ {row['at_least']:g}" if at_least else f"≤ {row['at_most']:g}"
            told = f"{self.cell(row, 3)}: {self.word(standing(row))}"
            found.setdefault((label, bound), {})[row["variant"]] = told
        names = list(dict.fromkeys(name for cells in found.values() for name in cells))
        rows = [[*key, *(cells.get(name, "–") for name in names)] for key, cells in found.items()]
        return table(["", self.word("asked"), *names], rows)

    def differences(self) -> list[str]:
        """Each variant less the one it is set beside, and the ratio of searches."""
        of = self.content["differences"]
        rows = [
            [self.name(key), *(self.cell(each.get(key), 3) for each in of.values())]
            for key in shown(of.values())
        ]
        ratios = [self.cell(self.content["ratios"][name].get("calls"), 3) for name in of]
        return table(["", *of], [*rows, [self.word("ratio"), *ratios]])

    def kinds(self) -> list[str]:
        """Accuracy and searches by kind."""
        kinds = sorted({kind for of in self.variants.values() for kind in of["by_kind"]})
        rows: list[list[str]] = []
        for kind in kinds:
            found = [of["by_kind"].get(kind, {}) for of in self.variants.values()]
            cells: list[str] = []
            for each in found:
                after = each.get("after", {})
                cells += [self.cell(after.get("accuracy")), self._plain(after.get("calls"))]
            rows.append([f"`{kind}`", str(max(each.get("n", 0) for each in found)), *cells])
        calls = self.name("calls")
        heads = [head for name in self.variants for head in (name, calls)]
        return table([self.word("kind"), "n", *heads], rows)

    def seeds(self) -> list[str]:
        """Run by run."""
        keys = ("accuracy", "j", "over_search", "calls")
        rows: list[list[str]] = []
        for name, of in self.variants.items():
            for seed in map(str, self.content["seeds"]):
                values = [of["by_seed"][seed].get(key) for key in keys]
                cells = ["–" if value is None else fixed(value, 2) for value in values]
                minutes = f"{of['seconds'][seed] / 60:.1f}"
                rows.append([f"{name}, {self.word('seed')} {seed}", *cells, minutes])
        heads = [self.name(key) for key in keys]
        return table([self.word("run"), *heads, self.word("minutes")], rows)

    def _plain(self, found: Content | None) -> str:
        return "–" if found is None else fixed(found["value"], 2)


class RunTables:
    """Markdown tables of one run in one language."""

    def __init__(self, content: Content, language: Language) -> None:
        self.content, self.language = content, language
        self.word, self.name = language.word, language.name
        self.before: Content = content["before"] or {}
        self.after: Content = content["after"]
        self.greedy: Content | None = content["greedy"]

    def measures(self) -> list[str]:
        """The main measures before and after, and where the numbers are from."""
        rows: list[list[str]] = []
        for key in RUN_ROWS:
            cells = [number(self.before.get(key)), number(self.after[key]), self._span(key)]
            greedy = [] if self.greedy is None else [number(self.greedy[key])]
            rows.append([self.name(key), *cells, *greedy])
        heads = ["", *map(self.word, ("before", "after", "interval"))]
        last = [] if self.greedy is None else [self.word("at temperature 0")]
        cold = self.content["cold_start"]
        text = self.word("run about").format(
            **{key: self.content[key] for key in ("samples", "seed", "steps", "processes")},
            questions=self.after["n"]["questions"],
            minutes=self.content["seconds"] / 60,
            cold=self.word(f"cold start {cold}") if cold else "",
            command=self.content["command"],
        )
        return [*table([*heads, *last], rows), "", text]

    def kinds(self) -> list[str]:
        """Accuracy and searches by kind."""
        rows: list[list[str]] = []
        for kind, after in self.after["by_kind"].items():
            before = self.before.get("by_kind", {}).get(kind, {})
            pairs = [(of.get("accuracy"), of.get("calls")) for of in (before, after)]
            cells = [number(value) for pair in zip(*pairs, strict=True) for value in pair]
            rows.append([f"`{kind}`", str(after["n"]), *cells])
        then, now = self.word("before"), self.word("after")
        joined = "{}（{}）" if self.language.chinese else "{}, {}"
        heads = [joined.format(self.name(key), when) for key in OF_KIND for when in (then, now)]
        return table([self.word("kind"), "n", *heads], rows)

    def gates(self) -> list[str]:
        """What the cold-started policy could do."""
        found = self.content["gates"]
        wanted = {name: self.word("at least").format(least) for name, least in AT_LEAST.items()}
        wanted["decision"] = self.word("under").format(DECISION_UNDER)
        rows = [[name, number(found.get(name), 3), bound] for name, bound in wanted.items()]
        return table([self.word("gate"), self.word("measured"), self.word("wanted")], rows)

    def _span(self, key: str) -> str:
        found = self.after["intervals"].get(key)
        return "–" if found is None else self.language.span(found["low"], found["high"])


OF_KIND = ("accuracy", "calls")
PARTS: Mapping[str, Callable[[Tables], list[str]]] = {
    "": Tables.measures,
    "asks": Tables.asks,
    "differences": Tables.differences,
    "kinds": Tables.kinds,
    "seeds": Tables.seeds,
}
RUN_PARTS: Mapping[str, Callable[[RunTables], list[str]]] = {
    "": RunTables.measures,
    "kinds": RunTables.kinds,
    "gates": RunTables.gates,
}


def number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else fixed(value, digits)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines]
