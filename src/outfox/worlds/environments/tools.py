"""One episode with tools.

reset ─▶ the task's prompt and the tools
step(message with calls)    ─▶ their results, in call order; the calls run side by side
step(message without calls) ─▶ done: it was the answer
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from outfox.core.deadline import within
from outfox.core.errors import ConfigError, ContractError, did_you_mean
from outfox.core.protocols import Environment, Tool
from outfox.core.types import (
    JSON,
    Message,
    Observation,
    Opening,
    Task,
    ToolCall,
    ToolResult,
    ToolStatus,
)


class ToolEnvironment:
    """An Environment: single use, made for one task with tools of its own.

    A call of an unknown tool gives status `refused`, wrong arguments or a tool that raises `error`,
    one that takes longer than `timeout_seconds` `timeout`; all are results that the policy reads.

    Args:
        timeout_seconds: Deadline of one call.

    Raises ConfigError where two tools share a name, ContractError where it is used twice.
    """

    def __init__(
        self, task: Task, seed: int, tools: Sequence[Tool], *, timeout_seconds: float = 60.0
    ) -> None:
        self._task = task
        self._seed = seed
        self._tools = {tool.spec.name: tool for tool in tools}
        if len(self._tools) != len(tools):
            names = sorted(tool.spec.name for tool in tools)
            raise ConfigError(f"tools of one environment have names of their own; got {names}")
        self._timeout_seconds = timeout_seconds
        self._statuses: list[str] = []
        self._answer: str | None = None
        self._opened = False
        self._done = False

    async def reset(self) -> Opening:
        if self._opened:
            raise ContractError("an environment is used for one episode; make a new one")
        self._opened = True
        return Opening(
            messages=self._task.prompt, tools=tuple(tool.spec for tool in self._tools.values())
        )

    async def step(self, message: Message) -> Observation:
        if not self._opened or self._done:
            state = "over" if self._done else "not yet reset"
            raise ContractError(f"step follows reset and precedes the end; this episode is {state}")
        if not message.tool_calls:
            self._answer, self._done = message.content, True
            return Observation(done=True)
        calls = message.tool_calls
        if len(calls) == 1:  # a task of its own takes longer than many a tool
            results = [await self._call(calls[0])]
        else:
            results = await asyncio.gather(*map(self._call, calls))
        self._statuses += [result.status for result in results]
        return Observation(
            messages=tuple(
                Message(role="tool", content=result.content, tool_call_id=result.tool_call_id)
                for result in results
            ),
            results=tuple(results),
        )

    def final(self) -> JSON:
        """`{"answer", "calls", "statuses"}`: what the episode came to."""
        return {
            "answer": self._answer,
            "calls": len(self._statuses),
            "statuses": dict(sorted(Counter(self._statuses).items())),
        }

    async def close(self) -> None:
        self._done = True

    async def _call(self, call: ToolCall) -> ToolResult:
        def failure(content: str, status: ToolStatus) -> ToolResult:
            return ToolResult(
                tool_call_id=call.id,
                name=call.name,
                content=content,
                status=status,
                error=content,
            )

        tool = self._tools.get(call.name)
        if tool is None:
            hint = did_you_mean(call.name, self._tools)
            return failure(f"There is no tool '{call.name}'.{hint}", "refused")
        # Nothing stops a codec from handing on what a model wrote instead of an object.
        if not isinstance(cast(object, call.arguments), Mapping):
            return failure(f"{call.name}: arguments are a JSON object.", "error")
        try:
            answer = tool(call.id, call.arguments)
            return await within(self._timeout_seconds, f"the tool {call.name}", answer)
        except TimeoutError:
            seconds = f"{self._timeout_seconds:g}"
            return failure(f"{call.name} did not answer within {seconds} seconds.", "timeout")
        except ConfigError:  # no call can succeed any more
            raise
        except Exception as error:
            return failure(f"{call.name} failed: {type(error).__name__}: {error}", "error")


part = ToolEnvironment


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnvironments:
    """An EnvironmentFactory: a ToolEnvironment per episode, with tools made for it."""

    tools: Callable[[Task, int], Sequence[Tool]]
    """(task, episode seed) -> the episode's tools."""
    timeout_seconds: float = 60.0

    def __call__(self, task: Task, seed: int) -> Environment:
        return ToolEnvironment(
            task, seed, self.tools(task, seed), timeout_seconds=self.timeout_seconds
        )
