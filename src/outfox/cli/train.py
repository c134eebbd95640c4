"""`outfox train`."""

from __future__ import annotations

from typing import Annotated

import typer

from outfox.build import train
from outfox.cli import verb

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
    """Train a policy by a recipe."""
    recipe, overrides = split_words(words or [])
    train(recipe, overrides, resume=resume, allow_user_code=not no_user_code, json=json)


def split_words(words: list[str]) -> tuple[str, list[str]]:
    """The first word is the recipe unless it is an override."""
    if words and ("=" not in words[0] or words[0].endswith((".yaml", ".yml"))):
        return words[0], words[1:]
    return "when-to-search", words
