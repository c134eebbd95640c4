"""Stored results of comparisons, and the tables of README and docs that show them.

    python scripts/fill_results.py runs/when-to-search-contrast   store, then fill the pages
    python scripts/fill_results.py                                fill the pages from docs/results
    python scripts/fill_results.py --check                        exit code 1: a page is out of date

A run's `comparison.json` is kept as `docs/results/<comparison>.json`. A page shows a part of it
between two comments, the comparison's name without that of its base, and the part:

    <!-- contrast asks -->
    <!-- /contrast asks -->

Parts: (none: every measure) · asks · differences · kinds · seeds. Pages `*.zh.md` are in Chinese.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from outfox.evaluation.asks import fixed, standing
from outfox.workbench.report.comparison import NAMES, hops, shown

ROOT = Path(__file__).resolve().parents[1]
_MARKER = re.compile(r"<!-- (?P<name>[\w -]+?) -->\n.*?<!-- /(?P=name) -->", re.DOTALL)

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
    "followed_poison": "采信被篡改的内容",
}
WORDS: Mapping[str, tuple[str, str]] = {
    "kind": ("kind", "类别"),
    "run": ("run", "运行"),
    "minutes": ("minutes", "分钟"),
    "greedy": (", greedy", "（贪心）"),
    "asked": ("asked", "要求"),
    "ratio": ("Searches, ratio", "搜索次数之比"),
    "seed": ("seed", "种子"),
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
}

Content = Mapping[str, Any]


class Tables:
    """Markdown tables of one comparison in one language."""

    def __init__(self, content: Content, *, chinese: bool) -> None:
        self.content, self.chinese = content, chinese
        self.variants: Mapping[str, Any] = content["variants"]

    def word(self, key: str) -> str:
        return WORDS[key][self.chinese]

    def name(self, measure: str) -> str:
        return CHINESE.get(measure, NAMES[measure][0]) if self.chinese else NAMES[measure][0]

    def cell(self, found: Content | None, digits: int = 2) -> str:
        if found is None:
            return "–"
        value, low, high = (found[key] for key in ("value", "low", "high"))
        if low is None or high is None:
            return fixed(value, digits)
        to = "至" if self.chinese else "to"
        return f"{fixed(value, digits)} ({fixed(low, digits)} {to} {fixed(high, digits)})"

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


PARTS: Mapping[str, Callable[[Tables], list[str]]] = {
    "": Tables.measures,
    "asks": Tables.asks,
    "differences": Tables.differences,
    "kinds": Tables.kinds,
    "seeds": Tables.seeds,
}


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines]


def filled(text: str, results: Mapping[str, Content], *, chinese: bool) -> str:
    """A page with every marker's content as the results have it; unknown markers stay."""

    def put(found: re.Match[str]) -> str:
        name, _, part = found["name"].partition(" ")
        if name not in results or part not in PARTS:
            return found[0]
        lines = PARTS[part](Tables(results[name], chinese=chinese))
        return "\n".join([f"<!-- {found['name']} -->", *lines, f"<!-- /{found['name']} -->"])

    return _MARKER.sub(put, text)


def stored(folder: Path) -> dict[str, Content]:
    """Marker name to result."""
    found: dict[str, Content] = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        found[str(content["comparison"]).removeprefix(f"{content['base']}-")] = content
    return found


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """The number of pages that were out of date, under --check; else 0."""
    results = root / "docs" / "results"
    check = "--check" in arguments
    for run in (Path(each) for each in arguments if each != "--check"):
        content = json.loads((run / "comparison.json").read_text(encoding="utf-8"))
        results.mkdir(exist_ok=True)
        file = results / f"{content['comparison']}.json"
        file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    found = stored(results)
    late = 0
    for page in sorted([*root.glob("*.md"), *(root / "docs").glob("*.md")]):
        text = page.read_text(encoding="utf-8")
        new = filled(text, found, chinese=page.name.endswith(".zh.md"))
        if new != text:
            late += 1
            print(f"{'out of date' if check else 'filled'}: {page.relative_to(root)}")  # noqa: T201
            if not check:
                page.write_text(new, encoding="utf-8")
    return late if check else 0


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
