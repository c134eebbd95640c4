"""The grammar of Search-R1's four tags, on text alone (no tokenizer).

    <think>currency of France ? Franc</think><search>currency of France</search>
    <think>currency of France : Euro</think><answer>Euro [d7]</answer>

Tags inside thinking are ignored; the first complete action ends the turn; an opening tag inside an
unclosed action starts anew. A tool of one text has a tag of its name, as `search` has. Differs from
Search-R1 in that it finds actions by a scan, not by one regular expression over everything, and in
that failures are typed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from outfox.core.errors import ConfigError, ContractError
from outfox.core.protocols import Parsed
from outfox.core.text import readable
from outfox.core.types import Action, ParseError, ParseFault, ToolCall, ToolSpec

SEARCH: Mapping[str, str] = {"search": "query"}
"""Tool to its one parameter."""
_OWN = ("think", "answer", "information")
_READING = re.compile(r"\[(?=(?:un)?sure\])", re.IGNORECASE)
_SURE = re.compile(r"\[(?:un)?sure\]", re.IGNORECASE)
_OPENED = re.compile(r"<\s*information\b[^<>]*>", re.IGNORECASE)
_CLOSED = re.compile(r"<\s*/\s*information\s*>", re.IGNORECASE)
_FORGED = re.compile(r"<\s*(?:/\s*)?information\b[^<>]*>|\[(?:un)?sure\]", re.IGNORECASE)
_CITATION = re.compile(r"(?<!\s)\s*\[\s*([\w.:/#@+-]+)\s*\]")
"""Blanks before it go too; looked for once per run of blanks, or long runs would take forever."""
_VALUE_MARKS = (" : ", " ? ")
"""A value follows: `:` states it, `?` drafts it."""

ACTION_ENDS = ("</search>", "</answer>")

_NAME = re.compile(r"[A-Za-z][\w-]*")

MESSAGES: dict[ParseFault, str] = {
    "no_action": "No action was found. Write a search or an answer.",
    "empty_query": "The query is empty. Write what to look for.",
    "empty_answer": "The answer is empty. Write an answer.",
    "malformed_call": "The search is not closed. Close it.",
    "several_answers": "There is more than one answer. Write one.",
}
"""What a policy is told; without tags, so that no text of an environment holds one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of a policy text, in characters: `text[start:end]` with its tags."""

    tag: str
    start: int
    inner_start: int
    inner_end: int
    end: int
    closed: bool = True

    def inner(self, text: str) -> str:
        return text[self.inner_start : self.inner_end]


@lru_cache(maxsize=64)
def _tag(tools: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"<(/?)({'|'.join((*_OWN, *tools))})>")


@lru_cache(maxsize=64)
def _tag_like(tools: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join((*_OWN, *tools))
    return re.compile(rf"<(?=\s*(?:/\s*)?(?:{names})\b)", re.IGNORECASE)


def text_parameters(specs: Iterable[ToolSpec]) -> dict[str, str]:
    """Tool to the one parameter that a tag fills.

    Raises ConfigError for a name that is no tag, and for a tool that needs more, less or other than
    one text.
    """
    found: dict[str, str] = {}
    for spec in specs:
        if spec.name in _OWN or not _NAME.fullmatch(spec.name):
            raise ConfigError(
                f"a tool is called by a tag of its name, a word other than {', '.join(_OWN)}; "
                f"got '{spec.name}': give it another name, @outfox.tool(name=...)"
            )
        needed = [str(name) for name in spec.parameters.get("required", ())]
        properties = spec.parameters.get("properties", {})
        if len(needed) != 1 or properties.get(needed[0], {}).get("type") != "string":
            takes = ", ".join(f"{n}: {properties[n].get('type', 'any')}" for n in needed)
            raise ConfigError(
                f"a tool that is called by a tag needs exactly one text; {spec.name} needs "
                f"({takes}): make one parameter `str` and give the others defaults"
            )
        found[spec.name] = needed[0]
    return found


def blocks(text: str, tools: Mapping[str, str] = SEARCH) -> tuple[Block, ...]:
    """Complete blocks in order; then the last opened one where it was never closed."""
    return _blocks(text, tuple(tools))


@lru_cache(maxsize=256)  # one text is read in several ways, one after the other
def _blocks(text: str, tools: tuple[str, ...]) -> tuple[Block, ...]:
    found: list[Block] = []
    opened: tuple[str, int, int] | None = None
    for match in _tag(tools).finditer(text):
        tag = match[2]
        if opened is not None and opened[0] == "think" and (tag != "think" or not match[1]):
            continue  # Whatever stands in thinking is thinking.
        if not match[1]:
            opened = (tag, match.start(), match.end())
        elif opened is not None and opened[0] == tag:
            start, inner_start = opened[1:]
            found.append(
                Block(
                    tag=tag,
                    start=start,
                    inner_start=inner_start,
                    inner_end=match.start(),
                    end=match.end(),
                )
            )
            opened = None
    if opened is not None:
        tag, start, inner_start = opened
        end = len(text)
        found.append(
            Block(
                tag=tag,
                start=start,
                inner_start=inner_start,
                inner_end=end,
                end=end,
                closed=False,
            )
        )
    return tuple(found)


def action_end(text: str, tools: Mapping[str, str] = SEARCH) -> int | None:
    """Where the first complete action ends; what follows is no part of the turn."""
    for block in blocks(text, tools):
        if block.closed and (block.tag == "answer" or block.tag in tools):
            return block.end
    return None


def parse(text: str, tools: Mapping[str, str] = SEARCH) -> Parsed:
    """A finished policy text as an action or a typed error."""
    found = blocks(text, tools)
    end = action_end(text, tools)
    flags = ("forged_observation",) if forged(text[:end], found) else ()
    for block in found:
        if not block.closed or (block.tag != "answer" and block.tag not in tools):
            continue
        inner = block.inner(text)
        if block.tag in tools:
            if blank(inner):
                return Parsed(error=_error("empty_query"), flags=flags)
            arguments = {tools[block.tag]: inner.strip()}
            call = ToolCall(id="call", name=block.tag, arguments=arguments)
            return Parsed(action=Action(calls=(call,)), flags=flags)
        if _answers(text, found) > 1:
            return Parsed(error=_error("several_answers"), flags=flags)
        answer, citations = split_citations(inner)
        if blank(answer):
            return Parsed(error=_error("empty_answer"), flags=flags)
        return Parsed(action=Action(answer=answer, citations=citations), flags=flags)
    unclosed = bool(found) and not found[-1].closed and found[-1].tag in tools
    return Parsed(error=_error("malformed_call" if unclosed else "no_action"), flags=flags)


def write(
    action: Action,
    thought: str = "",
    *,
    spaced: bool = False,
    tools: Mapping[str, str] = SEARCH,
) -> str:
    """The text that `parse` reads back as this action.

    Raises ContractError where the tags cannot say it: several calls, a tool that is none of
    `tools`, or a text that holds tags, brackets like a citation or nothing but blanks.
    """
    space = " " if spaced else ""
    thinking = f"<think>{space}{thought}</think>" if thought else ""
    if action.answer is not None:
        cited = "".join(f" [{one}]" for one in action.citations)
        text = f"{thinking}<answer>{space}{action.answer}{cited}</answer>"
    else:
        names = [call.name for call in action.calls]
        if len(names) != 1 or names[0] not in tools:
            raise ContractError(
                f"the tags write one call of {' or '.join(map(repr, tools))} or an answer per "
                f"turn; got calls {names}: use another codec"
            )
        argument = action.calls[0].arguments.get(tools[names[0]])
        text = f"{thinking}<{names[0]}>{space}{argument}</{names[0]}>"
    if not same_action(parse(text, tools).action, action):
        raise ContractError(
            f"an action is read back as it was written; {text!r} is not: leave out tags, "
            "citation brackets and outer blanks in thought, query and answer"
        )
    return text


def same_action(left: Action | None, right: Action | None) -> bool:
    """Equal but for the ids of their calls."""
    if left is None or right is None:
        return left is right
    return (left.answer, left.citations) == (right.answer, right.citations) and [
        (call.name, dict(call.arguments)) for call in left.calls
    ] == [(call.name, dict(call.arguments)) for call in right.calls]


def value_range(text: str, thought: Block) -> tuple[int, int] | None:
    """Characters of a thought's value, after its last mark, else all; None where it is blank."""
    inner = thought.inner(text)
    mark = max(inner.rfind(mark) for mark in _VALUE_MARKS)
    return trimmed(text, thought.inner_start + (mark + 3 if mark >= 0 else 0), thought.inner_end)


def trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The range without outer blanks; None where nothing is left."""
    inner = text[start:end]
    if not inner.strip():
        return None
    return start + len(inner) - len(inner.lstrip()), start + len(inner.rstrip())


def forged(text: str, found: Sequence[Block]) -> bool:
    """True where the policy wrote what only an environment may write.

    Thinking may mention the tag; a whole block or a reading mark is a forgery there too.
    """
    outside, position = "", 0
    for block in found:
        if block.tag == "think" and block.start < len(text):
            if _forged_in_thought(block.inner(text)):
                return True
            outside += text[position : block.start]
            position = block.end
    return bool(_FORGED.search(outside + text[position:]))


def _forged_in_thought(thought: str) -> bool:
    opened = _OPENED.search(thought)
    enclosed = opened is not None and _CLOSED.search(thought, opened.end()) is not None
    return enclosed or _SURE.search(thought) is not None


def split_citations(text: str) -> tuple[str, tuple[str, ...]]:
    """`Paris [d12]` as `Paris` and its cited ids, in order, with repeats."""
    return _CITATION.sub("", text).strip(), tuple(_CITATION.findall(text))


def escape(text: str, control: Collection[str] = (), tools: Mapping[str, str] = SEARCH) -> str:
    """Environment text in which no tag, reading mark or `control` token is written out.

    Their `<` becomes `&lt;`, their `[` `&#91;`. Control tokens that begin otherwise are left to the
    tokenizer, which is told to split them. A lone surrogate becomes a question mark.
    """
    text = readable(text)
    text = _READING.sub("&#91;", _tag_like(tuple(tools)).sub("&lt;", text))
    for token in control:
        if token.startswith("<") and token in text:
            text = text.replace(token, "&lt;" + token[1:])
    return text


def blank(text: str) -> bool:
    """True where nothing is visible: blanks, zero-width and control characters."""
    return all(ch.isspace() or unicodedata.category(ch) in ("Cc", "Cf") for ch in text)


def _answers(text: str, found: Sequence[Block]) -> int:
    """Opening answer tags outside thinking."""
    thought = sum(text.count("<answer>", b.start, b.end) for b in found if b.tag == "think")
    return text.count("<answer>") - thought


def _error(fault: ParseFault) -> ParseError:
    return ParseError(fault=fault, message=MESSAGES[fault])
