"""A world of the user's own: tasks from rows, passages from a corpus, tools from functions.

    tasks.path ─▶ train | held out        corpus.path ─▶ BM25 ─▶ search        tools ─▶ as they are

It has no demonstrations and no lexicon, so it needs a model that can already write actions.
"""

from __future__ import annotations

from collections.abc import Sequence

from outfox.core.errors import ConfigError
from outfox.core.protocols import Tool
from outfox.core.seeding import rng
from outfox.core.types import Task
from outfox.worlds.environments.tools import ToolEnvironments
from outfox.worlds.retrieval.bm25 import BM25
from outfox.worlds.retrieval.corpus import load_corpus
from outfox.worlds.tasks.rows import RowTasks, load_tasks
from outfox.worlds.tools.search import SearchTool
from outfox.worlds.world import Supplies, World, balanced


def make(
    supplies: Supplies,
    *,
    language: str = "en",
    held_out: float = 0.1,
    seed: int = 0,
    top_k: int = 3,
    show_ids: bool = True,
    timeout_seconds: float = 60.0,
) -> World:
    """`held_out`: share of the rows, drawn by seed, that training never sees.

    Raises ConfigError where there are no rows, or too few to hold some out, or nothing to call.
    """
    if supplies.tasks is None:
        raise ConfigError("the world 'rows' takes its tasks from a file: set tasks.path")
    if supplies.corpus is None and not supplies.tools:
        raise ConfigError("the world 'rows' needs something to call: set corpus.path or tools")
    tasks = list(load_tasks(supplies.tasks))
    rng(seed, "held-out").shuffle(tasks)
    count = round(held_out * len(tasks))
    if not 0 < count < len(tasks):
        raise ConfigError(
            f"world.held_out leaves rows on both sides; {held_out:g} of {len(tasks)} rows is "
            f"{count}: give more rows or another share"
        )
    retriever = BM25(load_corpus(supplies.corpus)) if supplies.corpus else None

    def tools(task: Task, episode_seed: int) -> Sequence[Tool]:
        own = [made() for made in supplies.tools]
        if retriever is None:
            return own
        return [SearchTool(retriever, episode_seed, top_k=top_k, show_ids=show_ids), *own]

    return World(
        name=supplies.tasks.stem,
        language=language,
        train=RowTasks(tasks[count:], seed=seed),
        held_out=balanced(tasks[:count], seed),
        environment=ToolEnvironments(tools=tools, timeout_seconds=timeout_seconds),
        retriever=retriever,
    )


part = make
