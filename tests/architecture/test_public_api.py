"""The public names, and what `import outfox` and `outfox --help` cost."""

import json
import subprocess
import sys

import pytest

import outfox

PUBLIC = ["Trajectory", "evaluate", "open_run", "resume", "score", "signal", "tool", "train"]
HEAVY = {"torch", "transformers", "vllm", "verl", "ray", "trl", "pyarrow", "bm25s"}

PROBE = """
import json, sys
from time import perf_counter
start = perf_counter()
{code}
seconds = perf_counter() - start
print(json.dumps([seconds, sorted({{name.partition(".")[0] for name in sys.modules}})]))
"""


def measured(code: str) -> tuple[float, set[str]]:
    """Best of three fresh processes: seconds, and the packages loaded."""
    runs = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", PROBE.format(code=code)],
            capture_output=True,
            text=True,
            check=True,
        )
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    return min(seconds for seconds, _ in runs), set(runs[0][1])


def test_these_names_are_public_and_no_others():
    assert sorted(outfox.__all__) == PUBLIC
    assert set(PUBLIC) <= set(dir(outfox))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_can_be_imported(name: str):
    assert callable(getattr(outfox, name))


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        outfox.__getattr__("trian")


def test_importing_outfox_is_light():
    seconds, packages = measured("import outfox")
    assert packages & (HEAVY | {"numpy", "pydantic"}) == set()
    assert seconds < 0.3


def test_help_is_light():
    code = "from outfox.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    seconds, packages = measured(code)
    assert packages & (HEAVY | {"numpy", "pydantic"}) == set()
    assert seconds < 0.5
