from types import SimpleNamespace
from typing import Any

import pytest

from outfox.cli.processes import Worker, check_workers
from outfox.core.errors import OutfoxError
from outfox.store.run_folder import RunFolder


def workers(*codes: int | None) -> list[Worker]:
    made: list[Any] = [SimpleNamespace(exitcode=code) for code in codes]
    there: Any = None
    return [Worker(process=each, there=there) for each in made]


def test_the_process_that_ended_is_named_with_what_to_do(tmp_path):
    run = RunFolder.create(tmp_path / "run", {})
    check_workers(workers(None, 0), run, None)
    with pytest.raises(OutfoxError, match="process 2 ended too soon with exit code 1: go on with"):
        check_workers(workers(None, 1), run, None)
    cause = RuntimeError("Connection closed by peer")
    with pytest.raises(OutfoxError, match="perhaps for want of memory") as caught:
        check_workers(workers(-9, None), run, cause)
    assert f"outfox train --resume {run.path}" in str(caught.value)
    assert caught.value.__cause__ is cause
