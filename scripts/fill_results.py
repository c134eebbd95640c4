"""Stored results of runs and comparisons, and the tables of README and docs that show them.

    python scripts/fill_results.py RUN [RUN ...]   store, then fill the pages
    python scripts/fill_results.py                 fill the pages from docs/results
    python scripts/fill_results.py --check         exit code 1: a page is out of date

RUN is the folder of a run or of a comparison. A page shows a part of what is stored between two
comments, a name and the part:

    <!-- contrast asks -->
    <!-- /contrast asks -->

of             kept in docs/results as          name                    parts
a comparison   <comparison>.json                its own, less its       (every measure), asks,
                                                base's                  differences, kinds, seeds
a run          run.json; a world in Chinese:    results; results-zh     (the main measures), kinds,
               run-zh.json                                              gates

One run per language is kept, the last that was given. Pages `*.zh.md` are in Chinese.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from result_tables import PARTS, RUN_PARTS, Content, Language, RunTables, Tables

from outfox.core.comparison import load_comparison
from outfox.core.config import RECIPES, load_recipe
from outfox.store.run_folder import RunFolder

ROOT = Path(__file__).resolve().parents[1]
_MARKER = re.compile(r"<!-- (?P<name>[\w -]+?) -->\n.*?<!-- /(?P=name) -->", re.DOTALL)


# -- pages ----------------------------------------------------------------------------------------
def filled(text: str, results: Mapping[str, Content], *, chinese: bool) -> str:
    """A page with every marker's content as the results have it; unknown markers stay."""
    language = Language(chinese=chinese)

    def put(found: re.Match[str]) -> str:
        name, _, part = found["name"].partition(" ")
        content = results.get(name)
        if content is None:
            return found[0]
        if "variants" in content and part in PARTS:
            lines = PARTS[part](Tables(content, language))
        elif "variants" not in content and part in RUN_PARTS:
            lines = RUN_PARTS[part](RunTables(content, language))
        else:
            return found[0]
        return "\n".join([f"<!-- {found['name']} -->", *lines, f"<!-- /{found['name']} -->"])

    return _MARKER.sub(put, text)


# -- what is stored -------------------------------------------------------------------------------
def stored(folder: Path) -> dict[str, Content]:
    """Marker name to result."""
    found: dict[str, Content] = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        if "variants" in content:
            found[str(content["comparison"]).removeprefix(f"{content['base']}-")] = content
        elif "run" in content:
            found[path.stem.replace("run", "results", 1)] = content
    return found


def to_store(folder: Path) -> tuple[str, Content]:
    """The name of a file in docs/results, and its content."""
    comparison = folder / "comparison.json"
    if comparison.exists():
        content = json.loads(comparison.read_text(encoding="utf-8"))
        return str(content["comparison"]), content
    return of_run(RunFolder.open(folder))


def of_run(run: RunFolder) -> tuple[str, Content]:
    """Raises DataError where there is no run, SystemExit where it is not finished."""
    summary, config, timings = run.summary(), run.config, run.timings()
    if summary.get("after") is None:
        raise SystemExit(f"a finished run has an evaluation after training; {run.path} has none")
    cold = bool(at(config, "cold_start.steps"))
    made = any(row.get("stage") == "imitate" for row in timings)
    gates: dict[str, float] = {}
    for row in run.events():
        if row["event"] == "gates":
            gates |= row.get("values") or {"decision": row["decision"]}
    language = at(config, "world.language") or "en"
    content = {
        "run": config["name"],
        "command": shlex.join(["outfox", "train", *words_of(config)]),
        "versions": run.about["versions"],
        "processes": run.about["processes"],
        "samples": at(config, "eval.samples"),
        "seconds": [row["whole"] for row in timings if row.get("stage") == "run"][-1],
        "cold_start": ("made" if made else "cached") if cold else None,
        "gates": gates,
        **{key: summary.get(key) for key in ("seed", "steps", "before", "after", "greedy")},
    }
    return "run" if language == "en" else f"run-{language}", content


def words_of(config: Mapping[str, Any]) -> list[str]:
    """What `outfox train` is given for such a run, as far as name, seed, steps and language say."""
    name = str(config["name"])
    shipped = [
        path.stem for path in RECIPES.glob("*.yaml") if f"{name}-".startswith(f"{path.stem}-")
    ]
    if not shipped:
        return [name, f"seed={config['seed']}"]
    recipe = max(shipped, key=len)
    comparison = load_comparison(recipe)
    if comparison is None:
        data, words = load_recipe(recipe).data, [recipe, f"seed={config['seed']}"]
    else:
        data, variant = comparison.base.data, name.removeprefix(f"{recipe}-")
        words = [recipe, f"variants={variant}", f"seeds={config['seed']}"]
    changed = [
        key for key in ("steps", "world.language") if at(config, key) not in (None, at(data, key))
    ]
    return words + [f"{key}={at(config, key)}" for key in changed]


def at(config: Any, key: str) -> Any:
    """The setting at a dotted key; None where there is none."""
    for name in key.split("."):
        config = config.get(name) if isinstance(config, Mapping) else None
    return config


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """The number of pages that were out of date, under --check; else 0."""
    results = root / "docs" / "results"
    check = "--check" in arguments
    for run in (Path(each) for each in arguments if each != "--check"):
        name, content = to_store(run)
        results.mkdir(exist_ok=True)
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (results / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
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
