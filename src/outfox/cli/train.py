"""`outfox train`."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from outfox.build import assemble
from outfox.cli import verb
from outfox.cli.contrast import run_comparison
from outfox.cli.display import Display
from outfox.cli.folders import create_folder, reopen_folder
from outfox.cli.processes import run_alone_or_together
from outfox.core.brief import VARIABLE, is_brief
from outfox.core.comparison import load_comparison
from outfox.core.config import RecipeFile, load_recipe
from outfox.core.errors import ConfigError
from outfox.evaluation.summary import line
from outfox.store.run_folder import RunFolder

app = verb("Example: outfox train when-to-search steps=20 rollout.group_size=8")


@app.command("train", epilog=app.info.epilog)
def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RECIPE] [KEY=VALUE ...]",
            help="A shipped recipe or a path (default: when-to-search), and settings to change.",
        ),
    ] = None,
    resume: Annotated[str | None, typer.Option(metavar="RUN", help="Go on with this run.")] = None,
    no_user_code: Annotated[
        bool, typer.Option("--no-user-code", help="Refuse path.py:attr and module:attr.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Train a policy by a recipe.

    A comparison trains several variants of one, and shows them side by side.
    """
    recipe, overrides = split_words(words or [])
    display = Display()
    if is_brief():
        display.say(f"{VARIABLE}=1: a training of seconds, which shows nothing but that it runs")
    if resume is not None and words:
        raise ConfigError(
            f"a resumed run keeps its settings; got {' '.join(words)}: leave them out, or begin "
            "a new run"
        )
    comparison = load_comparison(recipe, overrides) if resume is None else None
    if comparison is not None:
        content = run_comparison(comparison, display, allow_user_code=not no_user_code)
        if json:
            typer.echo(json_format.dumps(content, ensure_ascii=False, indent=2))
        return
    file = load_recipe(recipe, overrides) if resume is None else _recipe_of(Path(resume))
    system = assemble(file, allow_user_code=not no_user_code)
    folder = create_folder(system) if resume is None else reopen_folder(resume, display)
    display.say(f"run folder {folder.path}")
    try:
        outcome = run_alone_or_together(file, system, folder, display)
    except KeyboardInterrupt:
        display.say(f"stopped; go on with: outfox train --resume {folder.path}")
        raise
    if outcome.after is not None:
        display.compare(outcome.before, outcome.after)
    if outcome.greedy is not None:
        display.say(f"greedy (temperature 0): {line(outcome.greedy)}")
    display.say(f"report {folder.path / 'report.html'}")
    if json:
        typer.echo(json_format.dumps(outcome.summary, ensure_ascii=False, indent=2))


def train(
    recipe: str | Path = "when-to-search",
    overrides: Sequence[str] = (),
    *,
    allow_user_code: bool = True,
) -> RunFolder:
    """Train by a recipe's name or path, with `key.path=value` overrides; returns the run folder.

    Raises ConfigError or DataError for wrong input, before anything is written.
    """
    file = load_recipe(recipe, overrides)
    system = assemble(file, allow_user_code=allow_user_code)
    folder = create_folder(system)
    run_alone_or_together(file, system, folder, Display())
    return folder


def resume(run: str | Path, *, allow_user_code: bool = True) -> RunFolder:
    """Go on with a run from its newest checkpoint, to its end; returns the run folder.

    Raises DataError where the folder holds no run, or another process is writing it.
    """
    display = Display()
    file, folder = _recipe_of(Path(run)), reopen_folder(run, display)
    system = assemble(file, allow_user_code=allow_user_code)
    run_alone_or_together(file, system, folder, display)
    return folder


def split_words(words: list[str]) -> tuple[str, list[str]]:
    """The first word is the recipe unless it is an override."""
    if words and ("=" not in words[0] or words[0].endswith((".yaml", ".yml"))):
        return words[0], words[1:]
    return "when-to-search", words


def _recipe_of(path: Path) -> RecipeFile:
    """The recipe that a run folder keeps; its user files are looked for where they were."""
    opened = RunFolder.open(path)
    folders = tuple(map(Path, opened.about.get("folders", ())))
    config = dict(opened.config)
    return RecipeFile(name=str(config["name"]), path=path, folders=folders, data=config)
