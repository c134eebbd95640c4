"""Rows of EasyR1: columns by key, the prompt through a jinja template.

{"problem": "2 + 3?", "answer": "5"}          prompt_key: problem, format_prompt: math.jinja

The template is given `content`, the prompt's text. The gold is also kept as it is, under
`ground_truth`, where EasyR1's reward functions expect it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from outfox.core.errors import ConfigError, DataError
from outfox.core.types import Message, Task
from outfox.worlds.tasks.columns import Row, RowFormat, foreign_gold, refuse_media


def easyr1(
    *,
    prompt_key: str = "prompt",
    answer_key: str = "answer",
    image_key: str = "images",
    video_key: str = "videos",
    format_prompt: Path | None = None,
) -> RowFormat:
    """The keys are those of EasyR1's `data` section.

    Args:
        prompt_key: Column of the question.
        answer_key: Column of the gold.
        image_key: Column of images, which are refused.
        video_key: Column of videos, which are refused.
        format_prompt: A jinja file that is given the question as `content`.

    Raises ConfigError: no such template.
    """
    return _EasyR1Rows(
        prompt_key=prompt_key,
        answer_key=answer_key,
        media=(image_key, video_key),
        template=_template(format_prompt) if format_prompt else None,
    )


part = easyr1


@dataclass(frozen=True, slots=True, kw_only=True)
class _EasyR1Rows:
    prompt_key: str
    answer_key: str
    media: tuple[str, str]
    template: Template | None

    def __call__(self, row: Row) -> Task:
        refuse_media(row, *self.media)
        text = row.column(self.prompt_key, remedy="set tasks.format.prompt_key")
        gold = row.column(self.answer_key, remedy="set tasks.format.answer_key")
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"{row.where}: '{self.prompt_key}' is a text; got {text!r:.80}")
        return Task(
            task_id=row.name,
            prompt=(Message(role="user", content=self._written(text, row)),),
            reference=foreign_gold(gold, row),
            metadata={"question": text, **row.rest(self.prompt_key), "ground_truth": gold},
        )

    def _written(self, text: str, row: Row) -> str:
        if self.template is None:
            return text
        try:
            return self.template.render(content=text)
        except Exception as error:  # a template may do with the text whatever jinja can
            raise DataError(
                f"{row.where}: tasks.format.format_prompt is given `content` and nothing else; "
                f"{error}: mend the template"
            ) from error


def _template(path: Path) -> Template:
    try:
        text = path.read_text(encoding="utf-8").strip()
        return SandboxedEnvironment(undefined=StrictUndefined).from_string(text)
    except OSError as error:
        raise ConfigError(
            f"tasks.format.format_prompt: is a jinja file; {path} cannot be read: check the path"
        ) from error
    except TemplateError as error:
        raise ConfigError(f"tasks.format.format_prompt: {path} is no jinja: {error}") from error
