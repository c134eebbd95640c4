"""What may not be written anywhere in the project."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEFT_OUT = {"__pycache__", "dist", "build", "runs"}
HIDDEN_BUT_OURS = {".ci", ".gitignore", ".github"}
FORBIDDEN = {
    "an absolute path of one machine": r"(?<![\w.:/])/(?:work|root|home|opt|Users|srv)/\w",
    "the host of a package registry": r"pypi[.]org|pythonhosted[.]org|npmjs[.]|pytorch[.]org/whl",
    "unfinished work": r"\b(?:TO[D]O|FIX[M]E|XX[X])\b|\bNot[I]mplementedError\b",
}


def texts() -> Iterator[tuple[str, str]]:
    """Every text file of the project, as (path, content)."""
    for path in sorted(ROOT.rglob("*")):
        place = path.relative_to(ROOT)
        outside = any(
            part in LEFT_OUT or (part.startswith(".") and part not in HIDDEN_BUT_OURS)
            for part in place.parts
        )
        if outside or not path.is_file():
            continue
        try:
            yield str(place), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture


@pytest.mark.parametrize("what", FORBIDDEN)
def test_the_tree_does_not_hold(what: str):
    pattern = re.compile(FORBIDDEN[what])
    files = list(texts())
    assert len(files) > 100
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in files
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]
    assert found == []
