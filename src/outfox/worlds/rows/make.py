"""A world of the user's own: tasks from rows, passages from a corpus, tools from functions.

    tasks.path ─▶ train | held out        corpus.path ─▶ BM25 ─▶ search        tools ─▶ as they are
         └──────▶ lexicon, demonstrations ◀──────┘

A tiny policy is built from its words, and taught by rows that say how they are answered
(`shown.py`). A model that can read is taught the format by scripted searches (`searches.py`); one
that can already write actions needs neither. Rows that share a passage of `gold_evidence` stay on
one side: held out, or not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from outfox.core.errors import ConfigError
from outfox.core.lines import stem_of
from outfox.core.protocols import Tool
from outfox.core.types import Document, Task, ToolCall, ToolSpec
from outfox.worlds.environments.tools import ToolEnvironments
from outfox.worlds.retrieval.bm25 import BM25
from outfox.worlds.retrieval.corpus import load_corpus
from outfox.worlds.rows.demonstrations import Mix, RowDemonstrations, Words
from outfox.worlds.rows.lexicon import make_lexicon
from outfox.worlds.rows.searches import SearchDemonstrations
from outfox.worlds.rows.shown import Shown, labelled, question_of, read_row
from outfox.worlds.rows.split import split
from outfox.worlds.tasks.rows import RowTasks, load_rows
from outfox.worlds.tools.search import SearchTool
from outfox.worlds.world import Supplies, World, balanced

_MIX = Mix()
_WORDS = {
    "en": Words(unknown="unknown", nothing="Nothing was found."),
    "zh": Words(unknown="未知", nothing="没有找到。"),
}


def make(
    supplies: Supplies,
    *,
    language: str = "en",
    held_out: float = 0.1,
    seed: int = 0,
    top_k: int = 3,
    show_ids: bool = True,
    show_titles: bool = False,
    longest_passage: int | None = None,
    timeout_seconds: float = 60.0,
    must_ground: bool = False,
    teach: Literal["drills", "searches"] = "drills",
    demonstrations: Mix = _MIX,
) -> World:
    """A world of the user's own rows.

    Args:
        language: `en` or `zh`: of what stands where nothing was found, and of abstentions.
        held_out: Share of rows, drawn by seed, that training never sees.
        seed: Of that draw, and of the order of tasks.
        top_k: Passages per search.
        show_ids: Each passage begins with `[id]`, so that it can be cited.
        show_titles: Each passage begins with its title.
        longest_passage: Characters of a passage that are shown; null: all.
        timeout_seconds: Deadline of one tool call.
        must_ground: Nothing is to be answered from memory; a row may say so itself.
        teach: By drills for a tiny policy, as `demonstrations` mixes them, or by scripted searches.
        demonstrations: What the drills are made of.

    Raises ConfigError for too few rows or nothing to call, DataError for a row that is of no use.
    """
    tasks_path = _checked(supplies, teach)
    documents = load_corpus(supplies.corpus) if supplies.corpus else ()
    retriever = BM25(documents, cache=supplies.cache) if documents else None
    words = _WORDS.get(language, _WORDS["en"])
    shown = {"show_ids": show_ids, "show_titles": show_titles, "longest": longest_passage}
    search = partial(SearchTool, top_k=top_k, nothing=words.nothing, **shown)
    tools = _tools(supplies, retriever, search)
    specs = [tool.spec for tool in tools(None, seed)]
    rows = labelled(_read(tasks_path, supplies, specs, words.unknown, must_ground))
    lexicon = partial(make_lexicon, rows, documents, phrases=(words.unknown, words.nothing))
    rows = tuple(map(_searching, rows)) if retriever else rows
    test, train = split(rows, held_out, seed)
    environment = ToolEnvironments(tools=tools, timeout_seconds=timeout_seconds)
    environment(rows[0].task, seed)  # It refuses two tools of one name.
    demonstrator = _drills(train, test, environment, words, demonstrations)
    if teach == "searches" and retriever is not None:
        demonstrator = _searches(train, documents, search(retriever), language)
    return World(
        name=stem_of(tasks_path),
        language=language,
        train=RowTasks([row.task for row in train], seed=seed),
        held_out=balanced([row.task for row in test], seed),
        environment=environment,
        retriever=retriever,
        demonstrations=partial(demonstrator, tools=specs, seed=seed),
        make_lexicon=lexicon,
        made_of=_hash([row.task for row in rows], tasks_path, supplies.corpus),
    )


part = make


def _tools(
    supplies: Supplies, retriever: BM25 | None, search: Callable[..., SearchTool]
) -> Callable[[Task | None, int], Sequence[Tool]]:
    """Makes an episode's tools: search, where there is a corpus, and the user's own."""

    def tools(task: Task | None, episode_seed: int) -> Sequence[Tool]:
        own = [made() for made in supplies.tools]
        if retriever is None:
            return own
        return [search(retriever, episode_seed), *own]

    return tools


def _read(
    path: Path, supplies: Supplies, specs: Sequence[ToolSpec], unknown: str, must_ground: bool
) -> list[Shown]:
    """The rows; one may say itself whether it must be grounded."""
    rows: list[Shown] = []
    for number, task in load_rows(path, supplies.format).items():
        said = {"must_ground": True, **task.metadata} if must_ground else task.metadata
        row = f"{path.name} row {number}"
        rows.append(read_row(replace(task, metadata=said), row, specs, unknown=unknown))
    return rows


def _drills(
    rows: Sequence[Shown],
    held_out: Sequence[Shown],
    environment: ToolEnvironments,
    words: Words,
    mix: Mix,
) -> partial[RowDemonstrations]:
    return partial(RowDemonstrations, rows, held_out, environment=environment, words=words, mix=mix)


def _searches(
    rows: Sequence[Shown], documents: Sequence[Document], search: SearchTool, language: str
) -> partial[SearchDemonstrations]:
    tasks = [row.task for row in rows]
    titles = {document.id: document.title for document in documents}
    return partial(SearchDemonstrations, tasks, search=search, titles=titles, language=language)


def _checked(supplies: Supplies, teach: str) -> Path:
    """The file of the tasks. Raises ConfigError where there is none, or nothing to call."""
    if supplies.tasks is None:
        raise ConfigError("the world 'rows' takes its tasks from a file: set tasks.path")
    if supplies.corpus is None and not supplies.tools:
        raise ConfigError("the world 'rows' needs something to call: set corpus.path or tools")
    if supplies.corpus is None and teach == "searches":
        raise ConfigError("world.teach=searches needs passages to search: set corpus.path")
    return supplies.tasks


def _hash(tasks: Sequence[Task], *files: Path | None) -> str:
    """Of the files, and of what was read from them: a format may be set otherwise."""
    digest = hashlib.blake2b(digest_size=16)
    for task in tasks:
        digest.update(repr((task.prompt, task.reference)).encode())
    for file in files:
        digest.update(hashlib.blake2b(file.read_bytes() if file else b"").digest())
    return digest.hexdigest()


def _searching(row: Shown) -> Shown:
    """A row that does not say what to call searches for its question."""
    if row.calls or row.known:
        return row
    query = {"query": question_of(row.task)}
    return replace(row, calls=(ToolCall(id="call-0", name="search", arguments=query),))
