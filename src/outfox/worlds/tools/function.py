"""A Python function with type hints and a Google docstring as a Tool.

    @tool
    def lookup(city: str, year: int = 2026) -> str:
        \"\"\"Look up a city's mayor.

        Args:
            city: Name of the city.
            year: As-of year.
        \"\"\"

A sync function runs in a thread of its own, so it may block without stopping other episodes.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from outfox.core.errors import ConfigError
from outfox.core.notes import argument_notes
from outfox.core.types import JSON, Document, ToolResult, ToolSpec

log = logging.getLogger(__name__)
_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool:
    """A Tool around a function. Its result becomes text; Documents become `documents`.

    Wrong arguments, and an exception in the function, become a result with status `error` whose
    message the policy can read; a call longer than `timeout_seconds` one with status `timeout`.
    """

    function: Callable[..., Any]
    spec: ToolSpec
    arguments: type[BaseModel]
    timeout_seconds: float | None = None
    """null: the recipe's `user_code.seconds`; outside of a worker process, 30."""

    async def __call__(self, call_id: str, arguments: Mapping[str, JSON]) -> ToolResult:
        start = time.perf_counter()

        def result(content: str, **fields: Any) -> ToolResult:
            seconds = time.perf_counter() - start
            return ToolResult(
                tool_call_id=call_id,
                name=self.spec.name,
                content=content,
                seconds=seconds,
                **fields,
            )

        try:
            checked = self.arguments.model_validate(dict(arguments))
        except ValidationError as error:
            message = f"{self.spec.name}: {_explain(error)}"
            return result(message, status="error", error=message)
        values = {name: getattr(checked, name) for name in type(checked).model_fields}
        seconds = _SECONDS if self.timeout_seconds is None else self.timeout_seconds
        try:
            value = await asyncio.wait_for(_run(self.function, values), seconds)
        except TimeoutError:
            message = f"{self.spec.name} did not answer within {seconds:g} seconds."
            return result(message, status="timeout", error=message)
        except MemoryError as error:
            message = f"{self.spec.name} failed: {_raised(error)}"
            return result(message, status="crashed", error=message)
        except Exception as error:
            told = _raised(error)
            log.warning(
                f"the tool {self.spec.name} raised %s; the policy reads that its call failed: "
                "let the tool say what it cannot answer",
                told,
            )
            message = f"{self.spec.name} failed: {told}"
            return result(message, status="error", error=message)
        documents = _documents(value)
        if documents is not None:
            text = "\n".join(document.text for document in documents) or "Nothing was found."
            return result(text, documents=documents, status="ok" if documents else "empty")
        return result(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _raised(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


@overload
def tool(function: Callable[..., Any]) -> FunctionTool: ...
@overload
def tool(
    *, name: str | None = None, timeout_seconds: float | None = None
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    timeout_seconds: float | None = None,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Lift a function, sync or async, to a Tool; use it with or without brackets.

    Raises ConfigError where a parameter has no type hint, or takes `*args`.
    """

    def lift(target: Callable[..., Any]) -> FunctionTool:
        label = name or target.__name__
        model = create_model(
            label,
            __config__=ConfigDict(extra="forbid"),
            **_fields(target, label, argument_notes(target)),
        )
        schema = model.model_json_schema()
        schema.pop("title", None)
        spec = ToolSpec(name=label, description=_summary(target), parameters=schema)
        return FunctionTool(
            function=target, spec=spec, arguments=model, timeout_seconds=timeout_seconds
        )

    return lift if function is None else lift(function)


def _fields(target: Callable[..., Any], label: str, notes: Mapping[str, str]) -> dict[str, Any]:
    hints = get_type_hints(target)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(target).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ConfigError(f"a tool names its parameters; {label} takes *{parameter.name}")
        if parameter.name not in hints:
            raise ConfigError(
                f"a tool's parameters have type hints; {label}({parameter.name}) has none: "
                f"write {parameter.name}: str"
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        note = Field(default, description=notes.get(parameter.name))
        fields[parameter.name] = (hints[parameter.name], note)
    return fields


def _summary(target: Callable[..., Any]) -> str:
    """The first paragraph of the docstring."""
    text = inspect.getdoc(target) or ""
    return " ".join(text.split("\n\n")[0].split()) or target.__name__.replace("_", " ")


def _explain(error: ValidationError) -> str:
    problems = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
    return "; ".join(problems)


def _documents(value: Any) -> tuple[Document, ...] | None:
    if isinstance(value, Document):
        return (value,)
    if isinstance(value, list | tuple):
        items = list(cast(Sequence[Any], value))
        if items and all(isinstance(item, Document) for item in items):
            return tuple(items)
    return None


async def _run(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await cast(Awaitable[Any], function(**values))
    return await _in_thread(lambda: function(**values))


async def _in_thread(call: Callable[[], Any]) -> Any:
    """Like asyncio.to_thread, on a daemon thread: a call that hangs does not hang the exit."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def work() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = call()
        except Exception as caught:
            error = caught
        # After a time-out the loop may be gone; then nobody waits for this result.
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=work, name="outfox-tool", daemon=True).start()
    return await future
