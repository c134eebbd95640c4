"""Every wait has a name and a deadline."""

import asyncio

import pytest

from outfox.rollout.deadline import within


async def test_an_answer_in_time_is_passed_on():
    assert await within(1, "tool", asyncio.sleep(0, "x")) == "x"


async def test_a_late_answer_is_named():
    with pytest.raises(TimeoutError, match=r"tool did not answer within 0\.01 seconds"):
        await within(0.01, "tool", asyncio.sleep(60))


async def test_a_time_out_of_the_part_itself_is_not_renamed():
    async def own() -> None:
        raise TimeoutError("socket")

    with pytest.raises(TimeoutError, match="socket"):
        await within(1, "tool", own())
