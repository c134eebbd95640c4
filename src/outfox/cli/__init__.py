"""The command line: one file per verb, imported when the verb is called.

Exit codes: 0, 1 (a finding, or a run that failed), 2 (bad input), 130 (Ctrl-C).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from outfox.core.errors import ConfigError, DataError, OutfoxError

VERBS: Mapping[str, str] = {
    "train": "Train a policy by a recipe.",
    "init": "Write a tool, a signal, tasks and a recipe to start from.",
    "data": "List what ships, check files of your own.",
    "schema": "Print the JSON Schema of a recipe, for editors.",
    "doctor": "Tell what this machine has and what is missing.",
}
"""Verb to its one line in `outfox --help`; the rest is in `outfox/cli/<verb>.py`."""


class _Verb(TyperCommand):
    """Stands for a verb until it is called: `outfox --help` imports none of them."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        app: typer.Typer = import_module(f"outfox.cli.{self.name}").app
        return typer.main.get_command(app).make_context(info_name, args, parent, **extra)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"outfox {version('outfox')}")
        raise typer.Exit


def _root(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def verb(epilog: str) -> typer.Typer:
    """A Typer app with the house's settings; `epilog` shows an example."""
    return typer.Typer(
        add_completion=False,
        no_args_is_help=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        epilog=epilog,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def command() -> TyperGroup:
    """The whole command line, ready to be called with arguments."""
    app = verb("Example: outfox train when-to-search steps=20")
    app.callback(no_args_is_help=True, help=_PURPOSE)(_root)
    group = typer.main.get_group(app)
    for name, purpose in VERBS.items():
        group.add_command(_Verb(name, help=purpose, rich_markup_mode=None))
    return group


_PURPOSE = "Outfox trains language-model policies that act in several steps."


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `outfox` script: errors of ours become one clear line each."""
    try:
        command()(args=arguments, prog_name="outfox")
    except OutfoxError as error:
        typer.echo("\n".join(f"outfox: {line}" for line in str(error).splitlines()), err=True)
        sys.exit(2 if isinstance(error, ConfigError | DataError) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
