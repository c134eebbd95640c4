"""Who waits long says what for."""

import asyncio
import time

import pytest

from outfox.cli.display import Display
from outfox.core import waiting as module
from outfox.core.deadline import within
from outfox.core.waiting import told_after, waiting


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


async def test_a_person_reads_what_is_waited_for(capsys, monkeypatch):
    monkeypatch.setattr(module, "TOLD_AFTER", 0.02)
    with Display().warnings():
        for turn in (1, 2):
            with pytest.raises(TimeoutError):
                await within(0.1, f"environment.step of t, turn {turn}", asyncio.sleep(60))
        await within(60, "what is quick", asyncio.sleep(0))
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "warning: waiting for environment.step of t, turn 1, at most 0.1 s"


def test_a_wait_that_may_be_long_is_told_of_later():
    assert told_after(20) == 5
    assert told_after(3600) == 360
