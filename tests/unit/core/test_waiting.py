"""Who waits long says what for."""

import time

from outfox.core import waiting as module
from outfox.core.waiting import waiting


def test_a_long_wait_is_told_of_and_a_short_one_is_not(caplog, monkeypatch):
    monkeypatch.setattr(module, "TOLD_AFTER", 0.05)
    with waiting("the tide", 60):
        end = time.monotonic() + 30
        while not caplog.records and time.monotonic() < end:
            time.sleep(0.01)
    assert caplog.messages == ["waiting for the tide, at most 60 s"]
    monkeypatch.setattr(module, "TOLD_AFTER", 60)
    with waiting("nothing", 60):
        pass
    assert len(caplog.records) == 1
