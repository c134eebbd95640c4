"""`outfox schema`."""

from __future__ import annotations

import json

import typer

from outfox.cli import verb
from outfox.core.recipe import Recipe
from outfox.core.schema import json_schema

app = verb("Example: outfox schema > recipe.schema.json")


@app.command(epilog=app.info.epilog)
def schema() -> None:
    """Print the JSON Schema of a recipe, for editors.

    Settings of built-in parts are included.
    """
    typer.echo(json.dumps(json_schema(Recipe), indent=2, ensure_ascii=False))
