"""What came back, and whether it says what the answer says. Shared by rubric and signals.

All of it reads structured views: documents that the environment returned in this episode, calls
that parsed, and labels of the task; never a decoded transcript.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from outfox.core.errors import DataError
from outfox.core.types import JSON, Document, Task, ToolResult, Trajectory
from outfox.rewards.matchers import Gold, match, parse_reference
from outfox.rewards.matchers.date import dates_in, read_date
from outfox.rewards.matchers.list import split_items
from outfox.rewards.matchers.normalise import contains
from outfox.rewards.matchers.number import numbers_in, read_quantity


def question(task: Task) -> str:
    """The question's text: `metadata["question"]`, else what the user messages say."""
    stated = task.metadata.get("question")
    if isinstance(stated, str):
        return stated
    return "\n".join(message.content for message in task.prompt if message.role == "user")


def answerable(task: Task) -> bool:
    """Can anything be asserted? `metadata["answerable"]`, else whether there is a gold answer.

    A reference of a user's own shape counts as answerable.
    """
    stated = task.metadata.get("answerable")
    if isinstance(stated, bool):
        return stated
    try:
        return parse_reference(task.reference).answer is not None
    except DataError:
        return True


def labels(task: Task, key: str) -> tuple[str, ...]:
    """A list of names or ids in the metadata; empty where there is none."""
    return tuple(str(item) for item in cast("Iterable[JSON]", task.metadata.get(key) or ()))


def names_entity(task: Task, text: str) -> bool:
    """Does the text name an asked or bridging entity of the task?"""
    return any(contains(text, entity) for entity in labels(task, "entities"))


def call_text(arguments: Mapping[str, JSON]) -> str:
    """What a call asks for, as text."""
    return " ".join(str(value) for value in arguments.values())


def is_empty(result: ToolResult) -> bool:
    """Did the call bring nothing?"""
    if result.status not in ("ok", "truncated"):
        return True
    return not result.documents and not result.content.strip()


def made_relevant_call(trajectory: Trajectory, *, for_abstention: bool = False) -> bool:
    """Did a call bring a passage of `relevant_ids`?

    `for_abstention`: a well-formed query that names an asked or bridging entity also counts. Tasks
    without these labels: any result that is not empty.
    """
    task = trajectory.task
    relevant = set(labels(task, "relevant_ids"))
    if not relevant and not labels(task, "entities"):
        return any(not is_empty(result) for result in trajectory.results)
    if any(document.id in relevant for document in trajectory.documents):
        return True
    return for_abstention and any(
        names_entity(task, call_text(call.arguments)) for call in trajectory.calls
    )


def returned(trajectory: Trajectory) -> tuple[Document, ...]:
    """Documents that came back; the text of a result without any is one, which nobody can cite."""
    return tuple(
        document
        for result in trajectory.results
        for document in result.documents or _plain_text(result)
    )


def _plain_text(result: ToolResult) -> tuple[Document, ...]:
    if is_empty(result):
        return ()
    return (Document(id="", text=result.content, source=result.name),)


def supported(trajectory: Trajectory) -> bool | None:
    """Does a document returned in this episode support the answer?

    True where the answer (or, when it is right, an alias) stands in such a document and not in the
    question, and the document is about the task: one of its labelled passages, or one that names
    one of its entities; without labels any document is. Text of a tool that returns no documents
    counts like one. `metadata["to_support"]` lists what such documents must state in place of a
    right answer: what could not be known, where the last step to the answer could. Where the
    answer's words prove nothing (yes and no, a choice, an answer that the question contains) a
    labelled gold passage decides, and without labels None: nobody can say.
    """
    answer = trajectory.answer
    if answer is None:
        return None
    task = trajectory.task
    about = documents_about(task, returned(trajectory))
    if not about:
        return False
    gold = parse_reference(task.reference, row=task.task_id)
    asked = question(task)
    if _proves_nothing(gold) or states(gold, answer, asked):
        evidence = set(labels(task, "gold_evidence"))
        return any(document.id in evidence for document in about) if evidence else None
    texts = [passage(document) for document in about]
    needed = labels(task, "to_support")
    if needed and match(gold, answer).right:
        return all(any(contains(text, name) for text in texts) for name in needed)
    if gold.type == "list" and gold.answer is not None:
        golds = cast("tuple[Gold, ...]", gold.answer)
        items = split_items(answer, golds, match)
        return all(_item_stated(item, golds, texts) for item in items)
    return any(states(gold, answer, text) for text in texts)


def _proves_nothing(gold: Gold) -> bool:
    """Yes and no, also where a row does not call them boolean, and letters of a choice."""
    said = gold.answer.lower() if isinstance(gold.answer, str) else ""
    return gold.type in ("boolean", "multiple_choice") or said in ("yes", "no")


def documents_about(task: Task, documents: Iterable[Document]) -> list[Document]:
    """Those of the documents that are about the task, as far as its labels say."""
    ids = {*labels(task, "relevant_ids"), *labels(task, "gold_evidence")}
    if not ids and not labels(task, "entities"):
        return list(documents)
    return [
        document
        for document in documents
        if document.id in ids or names_entity(task, passage(document))
    ]


def passage(document: Document) -> str:
    """Title and text."""
    return f"{document.title}\n{document.text}"


def states(gold: Gold, answer: str, text: str) -> bool:
    """Does the text state this answer? Numbers and dates by value, the rest by words."""
    match gold.type:
        case "number":
            quantity = read_quantity(answer)
            values = {found.value for found in numbers_in(text)}
            return quantity is not None and {quantity.low, quantity.high} <= values
        case "date":
            date = read_date(answer)
            return date is not None and any(found.says(date) for found in dates_in(text))
        case _:
            return any(contains(text, form) for form in _forms(gold, answer))


def _forms(gold: Gold, answer: str) -> tuple[str, ...]:
    """The answer's words, and where it is right every name of the gold."""
    if gold.answer is None or gold.type == "list" or not match(gold, answer).right:
        return (answer,)
    return (answer, *(str(name) for name in gold.alternatives))


def _item_stated(item: str, golds: Iterable[Gold], texts: Iterable[str]) -> bool:
    meant = [gold for gold in golds if match(gold, item).right]
    stating = meant[0] if meant else Gold(type="text", answer=item)
    return any(states(stating, item, text) for text in texts)
