"""A comparison from start to finish: its runs one after the other, then what they show together.

Every run is an ordinary one in `<folder>/<variant>-seed<k>`. Finished runs are skipped and stopped
ones go on, so the same command can be given again and again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from outfox.build import assemble
from outfox.cli.display import Display
from outfox.cli.folders import create_folder
from outfox.cli.processes import run_alone_or_together
from outfox.cli.side_by_side import show
from outfox.core.comparison import ComparisonFile
from outfox.core.errors import ConfigError
from outfox.core.types import JSON
from outfox.evaluation.contrast import check_asks, contrast
from outfox.store.files import write_json
from outfox.store.run_folder import RunFolder, differences
from outfox.workbench.report.comparison import write_comparison

_APART = ("name", "run", "cache")
"""Settings that say where a run is kept, not what it is."""


def run_comparison(
    file: ComparisonFile, display: Display, *, allow_user_code: bool = True
) -> dict[str, JSON]:
    """All runs that are not finished yet, and `comparison.json` and `.html` after each seed.

    Raises ConfigError or DataError for wrong input in any variant before the first run begins.
    """
    check_asks(file.comparison.asks)
    _check(file, allow_user_code)
    plan = list(file.runs)
    runs: dict[str, dict[int, RunFolder]] = {name: {} for name in file.comparison.variants}
    content: dict[str, JSON] = {}
    changed = False
    for number, (seed, variant) in enumerate(plan, 1):
        display.say(f"[{number}/{len(plan)}] {variant}, seed {seed}")
        made = _run(file, variant, seed, display, allow_user_code)
        runs[variant][seed] = RunFolder.open(file.place(variant, seed))
        changed |= made
        last_of_seed = number % len(runs) == 0
        if last_of_seed and (changed or number == len(plan)):
            content = _write(file, runs)
            changed = False
    show(content, display)
    display.say(f"comparison {file.folder / 'comparison.html'}")
    return content


def _check(file: ComparisonFile, allow_user_code: bool) -> None:
    """Assemble every variant, and look at what is there already: what is wrong is wrong now."""
    questions: dict[str, frozenset[str]] = {}
    first, *_ = file.comparison.seeds
    for variant in file.comparison.variants:
        try:
            system = assemble(file.recipe(variant, first), allow_user_code=allow_user_code)
        except ConfigError as error:
            lines = str(error).splitlines()
            raise ConfigError("\n".join(f"{variant}: {line}" for line in lines)) from error
        evaluated = system.recipe.eval
        tasks = system.world.draw(evaluated.questions, evaluated.seed)
        questions[variant] = frozenset(task.task_id for task in tasks)
        for seed in file.comparison.seeds:
            _check_folder(file.place(variant, seed), {**system.config, "seed": seed})
    other = [name for name in questions if questions[name] != questions[file.against]]
    if other:
        raise ConfigError(
            f"variants are compared on the same held-out questions; {', '.join(other)} "
            f"would have others than {file.against}: give them the same world and eval settings"
        )


def _check_folder(path: Path, config: Mapping[str, JSON]) -> None:
    """Raises ConfigError where the folder holds a run with other settings."""
    if not (path / "run.yaml").exists():
        return
    stored = RunFolder.open(path).config
    old, new = ({k: v for k, v in c.items() if k not in _APART} for c in (stored, config))
    changed = differences(old, new)
    if changed:
        raise ConfigError(
            f"a comparison goes on with the runs that it finds; {path} has other settings: "
            f"{'; '.join(changed)}: remove that run, or choose another run.dir"
        )


def _run(
    file: ComparisonFile, variant: str, seed: int, display: Display, allow_user_code: bool
) -> bool:
    """One run, unless it is finished: then False."""
    path = file.place(variant, seed)
    there = (path / "run.yaml").exists()
    if there and RunFolder.open(path).summary().get("after") is not None:
        display.say(f"finished: {path}")
        return False
    recipe = file.recipe(variant, seed)
    system = assemble(recipe, allow_user_code=allow_user_code)
    folder = RunFolder.open(path) if there else create_folder(system)
    try:
        run_alone_or_together(recipe, system, folder, display)
    except KeyboardInterrupt:
        display.say("stopped; the same command goes on")
        raise
    return True


def _write(file: ComparisonFile, runs: Mapping[str, Mapping[int, RunFolder]]) -> dict[str, JSON]:
    content = contrast(file, runs)
    write_json(file.folder / "comparison.json", content)
    write_comparison(file.folder, content, runs)
    return content
