"""`outfox init`: a folder to start from, with a tool, a signal, tasks, a corpus and a recipe."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from outfox.cli import verb
from outfox.core.errors import ConfigError

STARTER = Path(__file__).parents[1] / "starter"
"""The files that are written, as they are."""

app = verb("Example: outfox init front-desk")


@app.command("init", epilog=app.info.epilog)
def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder, new or empty.")],
) -> None:
    """Write a tool, a signal, tasks and a recipe to start from."""
    try:
        _write(folder)
    except OSError as error:
        raise ConfigError(
            f"outfox init writes into a folder; {folder} cannot be written: {error.strerror}: "
            "name another"
        ) from error
    for file in _files():
        typer.echo(f"wrote {folder / file.name}")
    typer.echo(f"\nNext:\n  outfox data validate {shlex.quote(str(folder / 'tasks.jsonl'))}")
    typer.echo(f"  outfox train {shlex.quote(str(folder / 'recipe.yaml'))}")


def _write(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"outfox init writes into a folder; {folder} is a file: name another")
    if folder.is_dir() and any(folder.iterdir()):
        raise ConfigError(
            f"outfox init overwrites nothing, so its folder is new or empty; {folder} holds "
            f"{min(each.name for each in folder.iterdir())}: name another, or empty it"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for file in _files():
        (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")


def _files() -> list[Path]:
    return sorted(path for path in STARTER.iterdir() if path.is_file())
