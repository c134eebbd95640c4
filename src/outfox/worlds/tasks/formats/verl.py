"""Rows of veRL and Search-R1, read as they are.

{"data_source": "nq", "prompt": [{"role": "user", "content": "..."}], "ability": "fact-reasoning",
 "reward_model": {"style": "rule", "ground_truth": {"target": ["Rhine", "Rhein"]}},
 "extra_info": {"split": "train", "index": 7}}

The gold is `reward_model.ground_truth`; several targets are accepted answers. All columns but the
prompt are kept in the metadata under their own names, so reward functions find them there.
"""

from __future__ import annotations

from dataclasses import dataclass

from outfox.core.errors import DataError
from outfox.core.types import JSON, Task
from outfox.worlds.tasks.columns import Row, foreign_gold, read_messages, refuse_media


@dataclass(frozen=True, slots=True, kw_only=True)
class VerlRows:
    """A RowFormat."""

    prompt_key: str = "prompt"
    """Column of the chat messages."""
    """veRL's `data.prompt_key`."""

    def __call__(self, row: Row) -> Task:
        refuse_media(row, "images", "videos")
        prompt = row.column(self.prompt_key, remedy="set tasks.format.prompt_key")
        metadata = row.rest(self.prompt_key)
        match row.fields.get("extra_info"):
            case {"question": str(asked)}:
                metadata.setdefault("question", asked)
            case _:
                pass
        return Task(
            task_id=row.name,
            prompt=read_messages(prompt, row, self.prompt_key),
            reference=foreign_gold(_ground_truth(row), row),
            metadata=metadata,
        )


def _ground_truth(row: Row) -> JSON:
    match row.column("reward_model"):
        case {"ground_truth": gold} if gold is not None:
            return gold
        case other:
            raise DataError(
                f"{row.where}: 'reward_model' is an object with a 'ground_truth'; got "
                f"{other!r:.80}: rows that only a reward model scores have none, leave them out"
            )


part = VerlRows
