# pyright: standard
"""A BM25 index in a cache folder: words of a large corpus need not be counted at every start.

<folder>/bm25/<hash of documents, settings and this code>/    written aside, then renamed
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bm25s

from outfox.core.types import Document

MANY = 10_000
"""Fewer documents are indexed as quickly as a folder is read."""


def kept(
    make: Callable[[], Any], documents: Sequence[Document], folder: Path, *made_of: object
) -> Any:
    """The `bm25s` index that `make` gives, with its vocabulary, from the folder where it is there.

    An index that cannot be read is made anew.
    """
    digest = hashlib.blake2b(repr((bm25s.__version__, *made_of)).encode(), digest_size=12)
    for document in documents:
        digest.update(f"{document.title}\0{document.text}\0".encode())
    place = folder / "bm25" / digest.hexdigest()
    if place.is_dir():
        try:
            return bm25s.BM25.load(place, show_progress=False)
        except (OSError, ValueError, KeyError):
            shutil.rmtree(place, ignore_errors=True)
    index = make()
    aside = place.with_name(f".{place.name}.{os.getpid()}")
    index.save(aside, show_progress=False)
    try:
        aside.rename(place)
    except OSError:  # Another process was quicker.
        shutil.rmtree(aside, ignore_errors=True)
    return index
