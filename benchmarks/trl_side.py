"""TRL's side of `against_trl.py`, which starts it with the Python of TRL's environment.

    stdin   {"begin": {"scenario": ..., "variant": ..., "steps": most}}   one trainer
            {"steps": n}                                                  n whole steps of it
            {"end": true}                                                 the trainer is dropped
    stdout  one line of JSON for each; {"failed": why} where TRL raised, and the trainer is dropped

Episodes of several turns are TRL's own: `tools=[search]`, a chat template that renders calls and
results as Outfox's codec does, a response template that reads the tags, and their ends among the
model's end tokens, so that a message ends where its action does. The trainer trains all the while:
a callback waits for the next request between two steps, and waiting takes no CPU time.
"""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from tempfile import TemporaryDirectory
from typing import Any

import torch
from both_sides import (
    BATCH,
    SIBLINGS,
    STOPS,
    TASKS,
    Clock,
    Scenario,
    Step,
    answer_in,
    assembled,
    gold,
    points,
)
from datasets import Dataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedTokenizerBase,
    PrinterCallback,
    TrainerCallback,
)
from trl import GRPOConfig, GRPOTrainer

from outfox.build import System

# All turns after the first message lie in one assistant turn, as Outfox's codec `tags` has it.
TEMPLATE = """
{%- for message in messages -%}
{%- if message.role == 'tool' -%}
<information>{{ message.content }}</information>
{%- elif message.role == 'assistant' -%}
{%- if loop.first or loop.previtem.role not in ('assistant', 'tool') -%}<|assistant|>{%- endif -%}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] -%}
<search>{{ call.function.name }} {{ call.function.arguments }}</search>
{%- endfor -%}
{%- else -%}
<|{{ message.role }}|>{{ message.content }}<|end|>
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt and messages[-1].role not in ('assistant', 'tool') -%}
<|assistant|>
{%- endif -%}
"""
CALL = {
    "repeats": True,
    "content": "text",
    "transform": {
        "type": "function",
        "function": {"name": "search", "arguments": {"query": "{content}"}},
    },
}
RESPONSE = {
    "defaults": {"role": "assistant"},
    "start_anchor": ["<|assistant|>", "</information>"],
    "fields": {
        "thinking": {"open": "<think>", "close": "</think>", "repeats": True, "join": " "},
        "tool_calls": {"open": "<search>", "close": "</search>", **CALL},
        "content": {"open": "<answer>", "close": "</answer>"},
    },
}
ENDLESS_RESPONSE = {**RESPONSE, "fields": {"tool_calls": CALL}}
"""Without an opening tag, whatever was written is a call."""


class Requests:
    """One request per line in, one answer per line out; everything else goes to stderr."""

    def __init__(self) -> None:
        self._out, sys.stdout = sys.stdout, sys.stderr

    def next(self) -> Mapping[str, Any]:
        line = sys.stdin.readline()
        return json.loads(line) if line else {"end": True}

    def answer(self, content: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(content) + "\n")
        self._out.flush()


class Pacemaker(TrainerCallback):
    """Lets the trainer take the steps that are asked for, and measures each of them."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._clock = Clock()
        self._due = 0
        self._steps: list[Step] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self._wait(control)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, float], **rest: Any
    ) -> None:
        """Comes after every step, with its metrics; `completions/*` count the policy's own."""
        if "completions/mean_length" not in logs:
            return  # The summary of the whole training.
        tokens = round(logs["completions/mean_length"] * BATCH)
        self._steps.append(
            Step(
                cpu=self._clock.look(),
                tokens=tokens,
                sampled=tokens,
                calls=logs.get("tools/call_frequency", 0.0),
                reward=logs["reward"],
            )
        )
        if len(self._steps) >= self._due:
            self._requests.answer({"steps": [asdict(step) for step in self._steps]})
            self._wait(control)

    def _wait(self, control: Any) -> None:
        request = self._requests.next()
        self._due, self._steps = request.get("steps", 0), []
        control.should_training_stop = "end" in request
        self._clock.restart()


def search_of(system: System) -> Callable[[str], str]:
    """The world's search as a plain function: the same passages as Outfox's tool shows."""
    retriever = system.world.retriever
    assert retriever is not None

    def search(query: str) -> str:
        """Search for passages that answer a query.

        Args:
            query: What to look for.
        """
        found = retriever.search([query], 2)[0]
        return "\n".join(document.text for document in found) or "Nothing was found."

    return search


def reward(
    completions: Sequence[Any], completion_ids: Sequence[Any], right: Sequence[Any], **rest: Any
) -> list[float]:
    """`points` of each completion: a list of messages, the last of which may answer."""
    found: list[float] = []
    for messages, own in zip(completions, right, strict=True):
        last = messages[-1].get("content") or ""
        # Where TRL has read the message, the content is what stood between the answer's tags.
        answer = last if "thinking" in messages[-1] else answer_in(last)
        found.append(points(answer, str(messages), own))
    return found


def tasks_of(system: System, steps: int) -> Dataset:
    """The tasks of Outfox's steps, in order."""
    return Dataset.from_list(
        [
            {
                "prompt": [{"role": m.role, "content": m.content} for m in task.prompt],
                "right": gold(task),
            }
            for step in range(steps)
            for task in system.world.train.take(step, TASKS)
        ]
    )


def tokenizer_of(scenario: Scenario) -> PreTrainedTokenizerBase:
    tokenizer = AutoTokenizer.from_pretrained(scenario.model)
    if scenario.turns > 1:
        tokenizer.chat_template = TEMPLATE
        tokenizer.response_template = ENDLESS_RESPONSE if scenario.endless else RESPONSE
        if not scenario.endless:
            # TRL takes what follows the last end token before it as the rendering of a result.
            tokenizer.eos_token = STOPS[0]
    return tokenizer


def config_of(
    scenario: Scenario, variant: Mapping[str, Any], steps: int, folder: str
) -> GRPOConfig:
    """TRL at its best on a CPU: nothing logged, saved, checkpointed or cast."""
    rows = variant["rows"]
    paged = variant.get("paged")
    return GRPOConfig(
        output_dir=folder,
        use_cpu=True,
        bf16=False,
        max_steps=steps,
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=BATCH // rows,
        num_generations=SIBLINGS,
        max_completion_length=scenario.window if scenario.turns > 1 else scenario.new_tokens,
        # Without it every message of several turns may become as long as the whole completion.
        generation_kwargs={"max_new_tokens": scenario.new_tokens},
        max_tool_calling_iterations=scenario.turns - 1,
        use_transformers_continuous_batching=paged is not None,
        transformers_continuous_batching_config=paged,
        gradient_checkpointing=False,
        learning_rate=1e-6,
        lr_scheduler_type="constant",
        shuffle_dataset=False,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        torch_compile=bool(variant.get("compile")),
    )


def train(requests: Requests, order: Mapping[str, Any]) -> None:
    """One trainer, until it is told to end."""
    scenario, variant = Scenario(**order["scenario"]), order["variant"]
    system = assembled(scenario)
    tokenizer = tokenizer_of(scenario)
    model = AutoModelForCausalLM.from_pretrained(
        scenario.model, attn_implementation=variant.get("attention", "sdpa")
    )
    if not scenario.endless:
        ends = [*STOPS, "<|end|>"]
        model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids(ends)
    with TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            args=config_of(scenario, variant, order["steps"], folder),
            reward_funcs=reward,
            train_dataset=tasks_of(system, order["steps"]),
            processing_class=tokenizer,
            tools=[search_of(system)] if scenario.turns > 1 else None,
            callbacks=[Pacemaker(requests)],
        )
        trainer.remove_callback(PrinterCallback)
        requests.answer({"ready": True})
        trainer.train()


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    requests = Requests()
    versions = {name: version(name) for name in ("trl", "transformers", "torch")}
    requests.answer({"versions": versions})
    while "begin" in (request := requests.next()):
        try:
            train(requests, request["begin"])
        except Exception as error:  # a way that does not work for this model is a finding, too
            traceback.print_exc()
            requests.answer({"failed": f"{type(error).__name__}: {error}"})
        else:
            requests.answer({"ended": True})


if __name__ == "__main__":
    main()
