"""Every wait has a name and a deadline."""

import asyncio

import pytest

from outfox.core.deadline import within


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


async def test_what_answers_at_once_is_passed_on_and_may_fail():
    async def at_once(fails: bool) -> int:
        if fails:
            raise ValueError("at once")
        return 3

    assert await within(1, "tool", at_once(False)) == 3
    with pytest.raises(ValueError, match="at once"):
        await within(1, "tool", at_once(True))


async def test_what_is_awaited_hears_of_its_end_and_may_tidy_up():
    heard: list[str] = []

    async def tidy() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            heard.append("cancelled")
            await asyncio.sleep(0)
            heard.append("tidied")
            raise

    with pytest.raises(TimeoutError, match="tool did not answer"):
        await within(0.01, "tool", tidy())
    assert heard == ["cancelled", "tidied"]


async def test_a_cancelled_wait_is_cancelled():
    async def waits() -> None:
        await within(60, "tool", asyncio.sleep(60))

    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_futures_and_several_waits_are_passed_on():
    future = asyncio.get_running_loop().create_future()

    async def several() -> list[int]:
        return [await asyncio.sleep(0, 1), await future, await asyncio.sleep(0, 3)]

    asyncio.get_running_loop().call_later(0.001, future.set_result, 2)
    assert await within(1, "tool", several()) == [1, 2, 3]
    assert await within(1, "tool", future) == 2


async def test_who_is_cancelled_while_late_is_cancelled():
    async def tidy() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            task.cancel()
            raise

    async def waits() -> None:
        await within(0.01, "tool", tidy())

    task = asyncio.create_task(waits())
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_wait_inside_another_is_late_by_itself():
    async def inner() -> str:
        with pytest.raises(TimeoutError, match="inner"):
            await within(0.01, "inner", asyncio.sleep(60))
        return "went on"

    assert await within(60, "outer", inner()) == "went on"
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()
