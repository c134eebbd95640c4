"""A world of the user's own: tasks from rows, passages from a corpus, tools from functions.

    tasks.path ─▶ train | held out        corpus.path ─▶ BM25 ─▶ search        tools ─▶ as they are
         └──────▶ lexicon, demonstrations ◀──────┘

A tiny policy is built from its words, and taught by rows that say how they are answered
(`shown.py`). A model that can already write actions needs neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from outfox.core.errors import ConfigError
from outfox.core.protocols import Tool
from outfox.core.seeding import rng
from outfox.core.types import Task, ToolCall, ToolSpec
from outfox.worlds.environments.tools import ToolEnvironments
from outfox.worlds.retrieval.bm25 import BM25
from outfox.worlds.retrieval.corpus import load_corpus
from outfox.worlds.rows.demonstrations import Mix, RowDemonstrations, Words
from outfox.worlds.rows.lexicon import make_lexicon
from outfox.worlds.rows.shown import Shown, labelled, read_row
from outfox.worlds.tasks.columns import RowFormat
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
    timeout_seconds: float = 60.0,
    demonstrations: Mix = _MIX,
) -> World:
    """A world of the user's own rows.

    Args:
        language: `en` or `zh`: of what stands where nothing was found, and of abstentions.
        held_out: Share of rows, drawn by seed, that training never sees.
        seed: Of that draw, and of the order of tasks.
        top_k: Passages per search.
        show_ids: Each passage begins with `[id]`, so that it can be cited.
        timeout_seconds: Deadline of one tool call.
        demonstrations: What the cold start is made of.

    Raises ConfigError where there are no rows, or too few to hold some out, or nothing to call;
    DataError for a row that cannot be used.
    """
    tasks_path = _checked(supplies)
    documents = load_corpus(supplies.corpus) if supplies.corpus else ()
    retriever = BM25(documents) if documents else None
    words = _WORDS.get(language, _WORDS["en"])
    tools = _tools(supplies, retriever, top_k=top_k, show_ids=show_ids, nothing=words.nothing)
    specs = [tool.spec for tool in tools(None, seed)]
    rows = labelled(_read(tasks_path, supplies.format, specs, unknown=words.unknown))
    lexicon = make_lexicon(rows, documents, phrases=(words.unknown, words.nothing))
    if retriever is not None:
        rows = tuple(map(_searching, rows))
    test, train = _split(rows, held_out, seed)
    environment = ToolEnvironments(tools=tools, timeout_seconds=timeout_seconds)
    environment(rows[0].task, seed)  # It refuses two tools of one name.
    demonstrator = partial(
        RowDemonstrations,
        train,
        test,
        environment=environment,
        tools=specs,
        words=words,
        mix=demonstrations,
        seed=seed,
    )
    return World(
        name=tasks_path.stem,
        language=language,
        train=RowTasks([row.task for row in train], seed=seed),
        held_out=balanced([row.task for row in test], seed),
        environment=environment,
        retriever=retriever,
        demonstrations=demonstrator,
        lexicon=lexicon,
        made_of=_hash([row.task for row in rows], tasks_path, supplies.corpus),
    )


part = make


def _tools(
    supplies: Supplies, retriever: BM25 | None, *, top_k: int, show_ids: bool, nothing: str
) -> Callable[[Task | None, int], Sequence[Tool]]:
    """Makes an episode's tools: search, where there is a corpus, and the user's own."""

    def tools(task: Task | None, episode_seed: int) -> Sequence[Tool]:
        own = [made() for made in supplies.tools]
        if retriever is None:
            return own
        search = SearchTool(
            retriever, episode_seed, top_k=top_k, show_ids=show_ids, nothing=nothing
        )
        return [search, *own]

    return tools


def _read(
    path: Path, format: RowFormat, specs: Sequence[ToolSpec], *, unknown: str
) -> Sequence[Shown]:
    return [
        read_row(task, f"{path.name} row {number}", specs, unknown=unknown)
        for number, task in load_rows(path, format).items()
    ]


def _checked(supplies: Supplies) -> Path:
    """The file of the tasks. Raises ConfigError where there is none, or nothing to call."""
    if supplies.tasks is None:
        raise ConfigError("the world 'rows' takes its tasks from a file: set tasks.path")
    if supplies.corpus is None and not supplies.tools:
        raise ConfigError("the world 'rows' needs something to call: set corpus.path or tools")
    return supplies.tasks


def _split(
    rows: Sequence[Shown], share: float, seed: int
) -> tuple[Sequence[Shown], Sequence[Shown]]:
    """Held out, and the rest, in seeded order."""
    shuffled = list(rows)
    rng(seed, "held-out").shuffle(shuffled)
    count = round(share * len(shuffled))
    if not 0 < count < len(shuffled):
        raise ConfigError(
            f"world.held_out leaves rows on both sides; {share:g} of {len(shuffled)} rows is "
            f"{count}: give more rows or another share"
        )
    return shuffled[:count], shuffled[count:]


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
    stated = row.task.metadata.get("question")
    asked = stated if isinstance(stated, str) else row.task.prompt[-1].content
    question = " ".join(asked.split())
    return replace(
        row, calls=(ToolCall(id="call-0", name="search", arguments={"query": question}),)
    )
