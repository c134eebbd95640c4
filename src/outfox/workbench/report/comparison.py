"""`comparison.html`: several variants of a recipe side by side, from `comparison.json` and runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import cast

from outfox.core.types import JSON
from outfox.core.yaml import dump_yaml
from outfox.evaluation.asks import fixed, standing
from outfox.store.files import write_whole
from outfox.store.run_folder import RunFolder
from outfox.workbench.report.charts import Series, curves, number
from outfox.workbench.report.findings import MEASURES
from outfox.workbench.report.frame import fill

Block = Mapping[str, JSON]
NAMES: Mapping[str, tuple[str, str]] = {
    **MEASURES,
    "hops": ("Hops", "searches of one who knows nothing and searches once per hop"),
    "calls_per_hop": ("Searches per hop", "1 would be one search per hop, always"),
}
"""Every measure of a comparison: its name, and what it says."""
_FIRST = (
    "accuracy",
    "j",
    "over_search",
    "necessity_recall",
    "abstain_right",
    "abstain_false",
    "wrong",
    "closed_book_recall",
    "calls",
    "calls_per_hop",
    "calls_known",
    "calls_needed",
    "conflict",
)
_LEFT_OUT = frozenset(
    {"reward", "hops", "abstained", "under_search", "necessity_precision", "tokens_per_correct"}
)
"""Rewards of different rubrics are not comparable; the others are told by what is shown."""
_CURVES = (
    ("Accuracy", "Share of a step’s training questions answered right.", "accuracy"),
    ("Searches per question", "On a step’s training questions.", "calls"),
    ("J", "1 − over-search − under-search.", "j"),
    ("Over-search", "Searches, where the fact is known.", "over_search"),
    ("Under-search", "No relevant search, where one is needed.", "under_search"),
    ("Right abstention", "Says it does not know, where there is no answer.", "abstain_right"),
)
_SHARES = frozenset({"accuracy", "over_search", "under_search", "abstain_right"})


def write_comparison(
    folder: Path, content: Block, runs: Mapping[str, Mapping[int, RunFolder]]
) -> Path:
    """Write `comparison.html` beside `comparison.json`; returns its path."""
    file = folder / "comparison.html"
    write_whole(file, render(content, runs))
    return file


def render(content: Block, runs: Mapping[str, Mapping[int, RunFolder]]) -> str:
    """The page as text."""
    variants = cast("Mapping[str, Block]", content["variants"])
    parts = {
        "title": escape(str(content["comparison"])),
        "facts": _facts(content),
        "headline": _headline(content, variants),
        "against": escape(str(content["against"])),
        "asks": _asks(content),
        "table": _table(variants),
        "differences": _differences(content),
        "kinds": _kinds(variants),
        "curves": _curves(content, runs),
        "seeds": _seeds(content, variants),
        "command": escape(str(content["command"])),
        "settings": escape(
            dump_yaml({name: dict(of["settings"]) for name, of in variants.items()})
        ),
    }
    return fill("comparison.html", parts)


def shown(blocks: Iterable[Block]) -> list[str]:
    """The measures worth a row, in order: those that any block has."""
    present = {name for block in blocks for name in block} - _LEFT_OUT
    return [n for n in _FIRST if n in present] + [
        n for n in NAMES if n in present and n not in _FIRST
    ]


def hops(variants: Mapping[str, Block]) -> float | None:
    """Searches per question of one search per hop, always; None where tasks do not say."""
    found = next(iter(variants.values()))["after"].get("hops")
    return None if found is None else float(found["value"])


def _facts(content: Block) -> str:
    seeds = content["seeds"]
    versions = cast("Mapping[str, str]", content["versions"])
    told = [
        f"{content['questions']:,} held-out questions on {content['facts']:,} facts",
        f"{content['samples']} sample{'' if content['samples'] == 1 else 's'} each",
        f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))}",
        f"{content['steps']} steps",
        f"Outfox {versions.get('outfox', '')}",
    ]
    return " · ".join(escape(fact) for fact in told)


def _headline(content: Block, variants: Mapping[str, Block]) -> str:
    told = [
        f'<span class="s{index}">{escape(name)}</span> answers <strong>'
        f"{_percent(of['after']['accuracy'])}</strong> right with <strong>"
        f"{number(of['after']['calls']['value'])}</strong> searches a question"
        for index, (name, of) in enumerate(variants.items())
    ]
    each = hops(variants)
    reference = "" if each is None else f" One search per hop, always, would take {number(each)}."
    return f'<p class="lead">{"; ".join(told)}.{reference}</p>'


def _asks(content: Block) -> str:
    """A row per ask, a column per variant: the value, its interval, and whether it is there."""
    rows = cast("Sequence[Block]", content["asks"])
    if not rows:
        return ""
    against = escape(str(content["against"]))
    joined = {"value": "", "difference": f"less {against}’s", "ratio": f"over {against}’s"}
    places = {name: index for index, name in enumerate(content["variants"])}
    names = list(dict.fromkeys(row["variant"] for row in rows))
    asked: dict[str, dict[str, str]] = {}
    for row in rows:
        label = f"{_name(row['measure'])}<small>{joined[row['of']]}</small></th>"
        label += f'<td class="bound">{_bound(row)}'
        found = f"{_cell(row, 3)}<small>{standing(row)}</small>"
        asked.setdefault(label, {})[row["variant"]] = found
    lines = [
        f'<tr><th scope="row">{label}</td>'
        + "".join(f"<td>{cells.get(name, '')}</td>" for name in names)
        + "</tr>"
        for label, cells in asked.items()
    ]
    head = '<th scope="col">asked</th>' + _columns({name: places[name] for name in names})
    return (
        "<section><h2>What was asked</h2><p>As the comparison’s file has it. “Holds” is said of "
        "the whole interval, “holds on average” of the value alone.</p>"
        f"{_measures(head, lines)}</section>"
    )


def _bound(row: Block) -> str:
    side, bound = ("≥", row["at_least"]) if "at_least" in row else ("≤", row["at_most"])
    return f"{side}&thinsp;{number(bound)}"


def _table(variants: Mapping[str, Block]) -> str:
    """A row per measure, a column per variant: after training, and what it was before."""
    head = _columns({name: index for index, name in enumerate(variants)})
    rows = [_row(_label(key), key, variants, "after", "before") for key in shown(_after(variants))]
    if all("greedy" in of for of in variants.values()):
        for key in ("accuracy", "j", "calls"):
            label = f"{_name(key)}, greedy<small>always the likeliest token</small>"
            rows.append(_row(label, key, variants, "greedy", None))
    return _measures(head, rows)


def _after(variants: Mapping[str, Block]) -> list[Block]:
    return [of["after"] for of in variants.values()]


def _row(label: str, key: str, variants: Mapping[str, Block], when: str, was: str | None) -> str:
    cells: list[str] = []
    for of in variants.values():
        cell = _cell(of[when].get(key))
        earlier = of.get(was, {}).get(key) if was else None
        if earlier is not None:
            cell += f'<small class="was">was {_plain(earlier["value"])}</small>'
        cells.append(f"<td>{cell}</td>")
    return f'<tr><th scope="row">{label}</th>{"".join(cells)}</tr>'


def _differences(content: Block) -> str:
    others = cast("Mapping[str, Block]", content["differences"])
    if not others:
        return '<p class="empty">Only one variant was run.</p>'
    ratios = cast("Mapping[str, Block]", content["ratios"])
    places = {name: index for index, name in enumerate(content["variants"])}
    head = _columns({name: places[name] for name in others})
    rows = [
        f'<tr><th scope="row">{_label(key)}</th>'
        + "".join(f"<td>{_cell(others[name].get(key), 3, sign=True)}</td>" for name in others)
        + "</tr>"
        for key in shown(others.values())
    ]
    times = "".join(f"<td>{_cell(ratios[name].get('calls'))}</td>" for name in others)
    label = "Searches, ratio<small>1 is as many</small>"
    rows.append(f'<tr><th scope="row">{label}</th>{times}</tr>')
    return _measures(head, rows)


def _kinds(variants: Mapping[str, Block]) -> str:
    kinds = sorted({kind for of in variants.values() for kind in of["by_kind"]})
    scale = "".join(f'<i style="left:{x}%">{x}&thinsp;%</i>' for x in (0, 25, 50, 75, 100))
    rows = "".join(_kind(kind, variants) for kind in kinds)
    legend = "".join(
        f'<li class="s{index}"><i class="dot now"></i>{escape(name)}</li>'
        for index, name in enumerate(variants)
    )
    return (
        f'<ul class="legend lanes">{legend}<li><i class="dot was"></i>before</li></ul>'
        '<div class="kinds lanes" role="table"><div class="kind head" role="row">'
        '<span role="columnheader">Kind of question</span>'
        f'<span class="scale" role="columnheader" aria-label="accuracy">{scale}</span>'
        '<span role="columnheader">right</span><span role="columnheader">searches</span>'
        f'<span role="columnheader">n</span></div>{rows}</div>'
    )


def _kind(kind: str, variants: Mapping[str, Block]) -> str:
    tracks, right, calls, count = "", "", "", 0
    for index, of in enumerate(variants.values()):
        found = of["by_kind"].get(kind, {})
        before, after = (found.get(when, {}) for when in ("before", "after"))
        count = found.get("n", count)
        marks = _marks(before.get("accuracy"), "was") + _marks(after.get("accuracy"), "now")
        percent = _percent(after["accuracy"]) if "accuracy" in after else "–"
        tracks += f'<span class="track s{index}" aria-label="{percent}">{marks}</span>'
        right += f'<b class="s{index}">{percent}</b>'
        calls += f"<i>{fixed(after['calls']['value'], 2) if 'calls' in after else '–'}</i>"
    return (
        f'<div class="kind" role="row"><span role="rowheader">{escape(kind.replace("_", " "))}'
        f'</span><span role="cell">{tracks}</span><span role="cell">{right}</span>'
        f'<span role="cell">{calls}</span><span role="cell">{count}</span></div>'
    )


def _marks(found: Block | None, when: str) -> str:
    if found is None:
        return ""
    low, high = found["low"], found["high"]
    return (
        f'<s class="{when}" style="left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%"></s>'
        f'<i class="dot {when}" style="left:{100 * found["value"]:.1f}%"></i>'
    )


def _curves(content: Block, runs: Mapping[str, Mapping[int, RunFolder]]) -> str:
    """Each variant's mean over its seeds, step by step."""
    seeds = content["seeds"]
    rows = {
        name: [_by_step(run) for seed, run in of.items() if seed in seeds]
        for name, of in runs.items()
    }
    steps = sorted({step for of in rows.values() for run in of for step in run})
    figures = [
        curves(
            title,
            note,
            steps,
            [
                Series(name=name, values=[_mean(of, step, f"behaviour/{key}") for step in steps])
                for name, of in rows.items()
            ],
            low=0 if key != "j" else None,
            high=1 if key in _SHARES or key == "j" else None,
        )
        for title, note, key in _CURVES
    ]
    return "".join(figures)


def _by_step(run: RunFolder) -> dict[int, Block]:
    return {row["step"]: row for row in run.metrics() if row.get("stage") == "reinforce"}


def _mean(runs: Sequence[Mapping[int, Block]], step: int, key: str) -> float | None:
    values = [run[step][key] for run in runs if step in run and run[step].get(key) is not None]
    return sum(values) / len(values) if values else None


def _seeds(content: Block, variants: Mapping[str, Block]) -> str:
    keys = ("accuracy", "j", "over_search", "calls")
    head = "".join(f'<th scope="col">{_name(key)}</th>' for key in keys)
    rows: list[str] = []
    for index, (name, of) in enumerate(variants.items()):
        for seed in map(str, content["seeds"]):
            cells = "".join(f"<td>{_plain(of['by_seed'][seed].get(key))}</td>" for key in keys)
            link = f'<a href="{escape(of["runs"][seed])}/report.html">seed {seed}</a>'
            minutes = f"<td>{of['seconds'][seed] / 60:.1f}</td>"
            label = f'<span class="s{index}">{escape(name)}</span>, {link}'
            rows.append(f'<tr><th scope="row">{label}</th>{cells}{minutes}</tr>')
    return _measures(head + '<th scope="col">Minutes</th>', rows, "Run")


def _columns(places: Mapping[str, int]) -> str:
    """Headings in the variants' colours."""
    return "".join(
        f'<th scope="col" class="s{index}">{escape(name)}</th>' for name, index in places.items()
    )


def _measures(head: str, rows: Sequence[str], first: str = "Measure") -> str:
    return (
        f'<div class="wide"><table class="measures"><thead><tr><th scope="col">{first}</th>{head}'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _label(key: str) -> str:
    return f"{_name(key)}<small>{escape(NAMES[key][1])}</small>"


def _name(key: str) -> str:
    return escape(NAMES[key][0])


def _cell(found: Block | None, digits: int = 2, *, sign: bool = False) -> str:
    if found is None:
        return '<span class="dash">–</span>'
    low, high = found["low"], found["high"]
    text = _signed(found["value"], digits) if sign else _minus(fixed(found["value"], digits))
    if low is None or high is None:
        return text
    span = f"{_minus(fixed(low, digits))} to {_minus(fixed(high, digits))}"
    return f'{text}<small class="span">{span}</small>'


def _signed(value: float, digits: int) -> str:
    text = fixed(value, digits)
    return _minus(text) if text.startswith("-") or float(text) == 0 else f"+{text}"


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _plain(value: float | None) -> str:
    return "–" if value is None else _minus(fixed(value, 2))


def _percent(found: Block) -> str:
    return f"{100 * found['value']:.0f}&thinsp;%"
