"""Corpora in JSON lines: `{"id", "contents"}`, or `{"id", "title", "text", "date"}`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outfox.core.errors import DataError
from outfox.core.lines import stem_of
from outfox.core.text import is_unicode, json_lines
from outfox.core.types import Document


def load_corpus(path: Path) -> tuple[Document, ...]:
    """Documents of a JSON-lines file, plain or gzipped, in order.

    `contents` may begin with a title line, as in `"Lima"\\nLima is ...`.
    Raises DataError: no such file, no document, or a row (named by its number) without id or text,
    that is no JSON object, or whose id is taken.
    """
    if not path.is_file():
        raise DataError(f"a corpus is a JSON-lines file; {path} is none: check corpus.path")
    documents: dict[str, Document] = {}
    for number, row in json_lines(path, path.name):
        where = f"{path.name} row {number}"
        document = _document(row, where, stem_of(path))
        if document.id in documents:
            raise DataError(f"{where}: the id {document.id!r} is taken")
        documents[document.id] = document
    if not documents:
        raise DataError(f"a corpus holds at least one document; {path} holds none")
    return tuple(documents.values())


def _document(row: Any, where: str, source: str) -> Document:
    if not isinstance(row, dict):
        raise DataError(f"{where}: every row is a JSON object; found {type(row).__name__}")
    fields: dict[str, Any] = {str(key): value for key, value in row.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if fields.get("id") is None:
        raise DataError(f"{where}: the column 'id' is missing")
    title, text = fields.get("title") or "", fields.get("text")
    if text is None:
        title, text = _split_contents(fields.get("contents"), title)
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{where}: the column 'contents' (or 'text') is missing or empty")
    if not is_unicode(f"{fields['id']}{title}{text}{fields.get('source')}"):
        raise DataError(
            f"{where} holds half of a character (a lone surrogate), which is no text: remove it"
        )
    date = fields.get("date")
    return Document(
        id=str(fields["id"]),
        title=str(title),
        text=text,
        source=str(fields.get("source") or source),
        date=None if date is None else str(date),
    )


def _split_contents(contents: Any, title: str) -> tuple[str, Any]:
    """Search-R1's corpora write `"Title"` on the first line of `contents`."""
    if isinstance(contents, str) and not title and contents.startswith('"') and "\n" in contents:
        first, rest = contents.split("\n", 1)
        if first.rstrip().endswith('"') and rest.strip():
            return first.strip().strip('"'), rest
    return title, contents
