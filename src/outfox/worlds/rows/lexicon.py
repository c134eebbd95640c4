"""Every word of rows and passages, for a tokenizer of whole words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from outfox.core.types import Document
from outfox.worlds.rows.shown import Shown
from outfox.worlds.world import Lexicon

_UNSPACED = "\u2e80-\u30ff\u31f0-\u9fff\uf900-\ufaff"
_LETTER = rf"(?:(?![{_UNSPACED}])\w)"
_WORD = re.compile(rf"[{_UNSPACED}]|{_LETTER}+(?:[-.,:'’]{_LETTER}+)*|[^\w\s]")
"""A word, a number, a mark; of scripts without spaces, a character."""


def make_lexicon(
    rows: Sequence[Shown], documents: Sequence[Document], *, phrases: Iterable[str]
) -> Lexicon:
    """Words of prompts, passages and `phrases`; answers and arguments as names.

    A name is one token even where it is several words, so that a tiny policy can learn to copy it.
    """
    texts = [message.content for row in rows for message in row.task.prompt]
    texts += [text for document in documents for text in (document.id, document.text)]
    words = {word for text in (*texts, *phrases) for word in _WORD.findall(text)}
    names = {row.answer for row in rows}
    names |= {str(text) for row in rows for call in row.calls for text in call.arguments.values()}
    names = {" ".join(name.split()) for name in names}
    spaced = any(" " in text.strip() for text in texts)
    return Lexicon(
        words=tuple(sorted(words - names)),
        names=tuple(sorted(names)),
        separator=" " if spaced else "",
    )
