"""`outfox data`: what ships, and whether files of your own can be used."""

from __future__ import annotations

import ast
import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from outfox.cli import verb
from outfox.core.config import RECIPES, Part, load_yaml
from outfox.core.config import validate as checked
from outfox.core.parts import Parts, built_ins
from outfox.core.types import JSON
from outfox.worlds.retrieval.corpus import load_corpus
from outfox.worlds.tasks.formats import make_format
from outfox.worlds.tasks.formats.auto import whose
from outfox.worlds.tasks.rows import load_tasks, rows_of

app = verb("Example: outfox data validate questions.jsonl")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def data() -> None:
    """List what ships, check files of your own."""


@app.command("list", epilog="Example: outfox data list --json")
def list_data(as_json: AsJson = False) -> None:
    """List the shipped recipes, worlds, task sources, row formats and reward adapters."""
    rows = [{"kind": "recipe", "name": p.stem, "about": _comment(p)} for p in _recipes()]
    for family in ("world", "tasks", "format", "adapter"):
        rows += [
            {"kind": family, "name": name, "about": _docstring(module)}
            for name, module in built_ins(family).items()
        ]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        typer.echo(f"{row['kind']:<8}{row['name']:<24}{row['about']}".rstrip())


@app.command(epilog="Example: outfox data validate passages.jsonl --corpus")
def validate(
    path: Annotated[Path, typer.Argument(help="A .jsonl or .parquet file of tasks.")],
    corpus: Annotated[bool, typer.Option("--corpus", help="The file is a corpus.")] = False,
    format: Annotated[
        str, typer.Option(help="How the rows are written, as in tasks.format.")
    ] = "auto",
    as_json: AsJson = False,
) -> None:
    """Check a task file or a corpus row by row."""
    if corpus:
        documents = load_corpus(path)
        report: dict[str, JSON] = {"path": str(path), "documents": len(documents)}
        told = f"{path}: {len(documents)} documents, all usable"
    else:
        part = checked(Part, load_yaml(format), where="--format")
        tasks = load_tasks(path, make_format(part, Parts()))
        kinds = Counter(str(task.metadata.get("kind", "-")) for task in tasks)
        written = _formats(path) if part.type == "auto" else part.type
        report = {
            "path": str(path),
            "format": written,
            "tasks": len(tasks),
            "kinds": dict(sorted(kinds.items())),
        }
        told = f"{path}: {len(tasks)} tasks, all usable (format {written})"
    typer.echo(json.dumps(report, ensure_ascii=False) if as_json else told)


def _formats(path: Path) -> str:
    """What the columns of the rows say."""
    return ", ".join(sorted({str(whose(row)) for _, row in rows_of(path)}))


def _recipes() -> list[Path]:
    return sorted(RECIPES.glob("*.yaml"))


def _comment(path: Path) -> str:
    """A recipe's first line where it is a comment."""
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else ""


def _docstring(module: str) -> str:
    """The first line of a module's docstring, without importing it."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]
