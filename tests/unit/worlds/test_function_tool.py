import asyncio
import threading
from typing import Literal

import pytest

from outfox.core.errors import ConfigError
from outfox.core.types import Document
from outfox.worlds.tools.function import tool


@tool
def mayor(city: str, year: int = 2026, style: Literal["short", "long"] = "short") -> str:
    """Look up a city's mayor,
    in any year.

    Args:
        city: Name of the city,
            in English.
        year (int): As-of year.

    Returns:
        The name.
    """
    return f"{city} {year} {style}"


def test_the_spec_comes_from_hints_and_docstring():
    spec = mayor.spec
    assert (spec.name, spec.description) == ("mayor", "Look up a city's mayor, in any year.")
    assert spec.parameters["required"] == ["city"]
    assert spec.parameters["additionalProperties"] is False
    city, year = spec.parameters["properties"]["city"], spec.parameters["properties"]["year"]
    assert (city["type"], city["description"]) == ("string", "Name of the city, in English.")
    assert (year["type"], year["default"], year["description"]) == ("integer", 2026, "As-of year.")
    assert spec.parameters["properties"]["style"]["enum"] == ["short", "long"]


async def test_a_call_fills_in_defaults():
    result = await mayor("c1", {"city": "Lima"})
    assert (result.content, result.status, result.tool_call_id) == ("Lima 2026 short", "ok", "c1")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "city: Field required"),
        ({"city": 5}, "city: Input should be a valid string"),
        ({"city": "Lima", "years": 1}, "years: Extra inputs are not permitted"),
        ({"city": "Lima", "style": "odd"}, "style: Input should be 'short' or 'long'"),
    ],
)
async def test_wrong_arguments_are_a_readable_error(arguments, says):
    result = await mayor("c1", arguments)
    assert result.status == "error"
    assert says in result.content
    assert result.error == result.content


async def test_async_functions_json_and_documents():
    @tool(name="look")
    async def lookup(city: str):
        return {"city": city, "n": 1}

    assert lookup.spec.name == "look"
    assert lookup.spec.description == "lookup"
    assert (await lookup("c", {"city": "São"})).content == '{"city": "São", "n": 1}'

    @tool
    def passages(n: int):
        return [Document(id=f"d{i}", text=f"text {i}") for i in range(n)]

    result = await passages("c", {"n": 2})
    assert (result.content, len(result.documents)) == ("text 0\ntext 1", 2)


async def test_an_exception_becomes_an_error():
    @tool
    def broken(x: int) -> int:
        return 1 // x

    result = await broken("c", {"x": 0})
    assert result.status == "error"
    assert "ZeroDivisionError" in result.content


async def test_a_slow_function_times_out_and_does_not_block_others():
    release = threading.Event()

    @tool(timeout_seconds=0.05)
    def stuck() -> str:
        release.wait(30)
        return "late"

    quick = mayor("c2", {"city": "Lima"})
    slow, fast = await asyncio.gather(stuck("c1", {}), quick)
    release.set()
    assert (slow.status, fast.status) == ("timeout", "ok")
    assert "0.05 seconds" in slow.content


def test_functions_without_hints_or_with_stars_are_refused():
    def bare(x):
        return x

    def starred(*names: str):
        return names

    with pytest.raises(ConfigError, match=r"bare\(x\) has none"):
        tool(bare)
    with pytest.raises(ConfigError, match=r"takes \*names"):
        tool(starred)
