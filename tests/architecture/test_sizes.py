"""Budgets on the tails: no long file, no long function, no drawer for odds and ends."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "outfox"
FILES = sorted(SOURCE.rglob("*.py"))


def test_files_have_at_most_400_lines():
    lengths = {path: len(path.read_text().splitlines()) for path in FILES}
    assert len(lengths) > 50
    assert {str(path.relative_to(SOURCE)): n for path, n in lengths.items() if n > 400} == {}


def test_functions_have_at_most_60_lines():
    long = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > 60:
                    long[f"{path.relative_to(SOURCE)}:{node.name}"] = length
    assert long == {}


def test_no_file_is_called_utils():
    vague = {"utils", "util", "helpers", "helper", "misc", "common"}
    assert [str(path) for path in FILES if vague & {path.stem, path.parent.name}] == []
