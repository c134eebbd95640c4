"""Outfox against TRL 1.16: policy-owned tokens kept for training per CPU-second, whole steps.

    make install VENV=.venv-trl        # once: Outfox and the CPU build of torch, as in .venv
    .venv-trl/bin/uv pip install --python .venv-trl/bin/python -c constraints.txt 'trl==1.16.0'
    .venv/bin/python benchmarks/against_trl.py --trl-python .venv-trl/bin/python [--out FILE]

Both sides train the same weights on the same tasks, 8 tasks x 8 siblings a step, with one thread
each. They take turns within one run, so that a busy machine disturbs both alike:

    trials        every way TRL offers, a step or two each ─▶ its best
    round 1..N    Outfox k steps │ TRL k steps             ─▶ a rate each, and their ratio

`docs/benchmarks.md` says how to read the result and what is not compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from both_sides import BATCH, Scenario, Step
from outfox_side import cold_started, outfox_steps, random_weights, sufficient

TARGETS = {"multi-turn": 3.0, "single turn": 1.5}
PAGES = {"page_size": 32, "num_blocks": 1100, "max_batch_tokens": 4096}
"""Room for 64 whole contexts of 512 tokens."""
VARIANTS: tuple[Mapping[str, Any], ...] = (
    {"name": "generate, 64 rows a micro-batch", "rows": 64},
    {"name": "generate, 16 rows a micro-batch", "rows": 16},
    {"name": "generate, 64 rows, eager attention", "rows": 64, "attention": "eager"},
    {"name": "continuous batching, 64 rows", "rows": 64, "paged": PAGES},
)


# -- TRL's side -----------------------------------------------------------------------------------
class TrlFailed(Exception):
    """TRL raised; its process goes on."""


class TrlSide:
    """The other process: a request and an answer, each one line of JSON."""

    def __init__(self, python: str, log: Path) -> None:
        self._log = log
        self._errors = log.open("w")
        self._process = subprocess.Popen(
            [python, str(Path(__file__).with_name("trl_side.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "TOKENIZERS_PARALLELISM": "false",
                "TRL_EXPERIMENTAL_SILENCE": "1",
                "HF_HUB_OFFLINE": "1",
            },
        )
        self.about = self._read()

    def begin(self, scenario: Scenario, variant: Mapping[str, Any], steps: int) -> None:
        order = {"scenario": asdict(scenario), "variant": dict(variant), "steps": steps}
        self._ask({"begin": order})

    def steps(self, count: int) -> list[Step]:
        return [Step(**step) for step in self._ask({"steps": count})["steps"]]

    def end(self) -> None:
        self._ask({"end": True})

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._errors.close()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        if "failed" in answer:
            raise TrlFailed(answer["failed"])
        return answer

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            told = "\n".join(self._log.read_text().splitlines()[-15:])
            raise SystemExit(f"TRL's process ended; the end of {self._log}:\n{told}")
        return json.loads(line)


# -- the comparison -------------------------------------------------------------------------------
def rate(steps: Sequence[Step]) -> float:
    """Trained policy-owned tokens per CPU-second."""
    return sum(step.tokens for step in steps) / sum(step.cpu for step in steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One scenario's result."""

    scenario: Scenario
    trials: Mapping[str, float]
    """TRL's rate by variant."""
    outfox: tuple[tuple[Step, ...], ...]
    """By round."""
    trl: tuple[tuple[Step, ...], ...]

    @property
    def best(self) -> str:
        return max(self.trials, key=self.trials.__getitem__)

    @property
    def ratios(self) -> list[float]:
        return [rate(a) / rate(b) for a, b in zip(self.outfox, self.trl, strict=True)]

    def data(self) -> dict[str, Any]:
        return {
            "scenario": asdict(self.scenario),
            "trials": dict(self.trials),
            "best": self.best,
            "outfox": _side(self.outfox),
            "trl": _side(self.trl),
            "ratio": _spread(self.ratios),
            "target": TARGETS.get(self.scenario.name),
        }


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def _side(rounds: Sequence[Sequence[Step]]) -> dict[str, Any]:
    steps = [step for steps in rounds for step in steps]
    return {
        "tokens_per_cpu_second": _spread([rate(steps) for steps in rounds]),
        "steps": len(steps),
        "tokens_per_episode": statistics.mean(step.sampled for step in steps) / BATCH,
        "calls_per_episode": statistics.mean(step.calls for step in steps),
        "share_trained": sum(s.tokens for s in steps) / sum(s.sampled for s in steps),
        "cpu_seconds_per_step": statistics.median(step.cpu for step in steps),
        "reward": statistics.mean(step.reward for step in steps),
    }


def tried(trl: TrlSide, scenario: Scenario, steps: int) -> dict[str, float]:
    """TRL's rate in every variant, after one step to warm up; 0 where TRL raises."""
    rates: dict[str, float] = {}
    for variant in VARIANTS:
        name, why = str(variant["name"]), ""
        try:
            trl.begin(scenario, variant, steps + 1)
            trl.steps(1)
            rates[name] = rate(trl.steps(steps))
            trl.end()
        except TrlFailed as failure:
            rates[name], why = 0.0, f"  ({failure})"
        print(f"    {rates[name]:8,.0f}  {name}{why}", flush=True)
    return rates


async def compared(trl: TrlSide, scenario: Scenario, options: argparse.Namespace) -> Comparison:
    print(f"{scenario.name}: TRL's trials, tokens per CPU-second", flush=True)
    trials = tried(trl, scenario, options.trial_steps)
    best = max(trials, key=trials.__getitem__)
    most = 1 + options.rounds * options.steps
    trl.begin(scenario, next(v for v in VARIANTS if v["name"] == best), most)
    ours: list[tuple[Step, ...]] = []
    theirs: list[tuple[Step, ...]] = []
    async with aclosing(outfox_steps(scenario, most)) as outfox:
        await _next(outfox, 1)
        trl.steps(1)
        for _ in range(options.rounds):
            ours.append(await _next(outfox, options.steps))
            theirs.append(tuple(trl.steps(options.steps)))
            print(f"    Outfox {rate(ours[-1]):8,.0f}   TRL {rate(theirs[-1]):8,.0f}", flush=True)
    trl.end()
    return Comparison(scenario=scenario, trials=trials, outfox=tuple(ours), trl=tuple(theirs))


async def _next(steps: AsyncIterator[tuple[Step, Any]], count: int) -> tuple[Step, ...]:
    return tuple([(await anext(steps))[0] for _ in range(count)])


async def scenarios(folder: Path, options: argparse.Namespace) -> list[Scenario]:
    """All comparisons; a message may be as long as 99 in 100 of those that end by themselves."""
    policy, overrides = options.model, tuple(options.set)
    if policy is None:
        print(f"cold start of {options.cold_start} steps", flush=True)
        policy = await cold_started(
            folder / "policy",
            steps=options.cold_start,
            recipe=options.recipe,
            overrides=overrides,
        )
    several = Scenario(
        name="multi-turn",
        model=str(policy),
        turns=6,
        new_tokens=48,
        window=320,
        recipe=options.recipe,
        overrides=overrides,
    )
    enough = await sufficient(several, options.limit_steps)
    print(f"limit on a message: {enough} tokens", flush=True)
    several = replace(several, new_tokens=enough)
    endless = replace(
        several,
        name="never ends, one turn",
        model=str(random_weights(folder / "random", several)),
        turns=1,
        new_tokens=80,
        endless=True,
    )
    found = [
        several,
        replace(several, name="single turn", turns=1),
        endless,
        replace(endless, name="never ends, three turns", turns=3, new_tokens=40),
    ]
    return [scenario for scenario in found if options.only in scenario.name]


def table(comparisons: Sequence[Comparison]) -> str:
    """The result for people."""
    lines = [
        f"{'':24} {'Outfox':>22} {'TRL, at its best':>22} {'ratio':>18}  target",
    ]
    for comparison in comparisons:
        found = comparison.data()
        cells = [
            "{median:,.0f} [{low:,.0f}, {high:,.0f}]".format(**found[side]["tokens_per_cpu_second"])
            for side in ("outfox", "trl")
        ]
        ratio = "{median:.2f} [{low:.2f}, {high:.2f}]".format(**found["ratio"])
        target = f"{found['target']:g}" if found["target"] else "-"
        lines.append(
            f"{comparison.scenario.name:24} {cells[0]:>22} {cells[1]:>22} {ratio:>18}  {target:>6}"
        )
        lines.append(f"    TRL: {comparison.best}")
        for side in ("outfox", "trl"):
            lines.append(
                "    {side:6} {tokens_per_episode:.1f} tokens and {calls_per_episode:.2f} calls an "
                "episode, {share_trained:.0%} trained, {cpu_seconds_per_step:.2f} CPU-seconds a "
                "step, reward {reward:.2f}".format(side=side, **found[side])
            )
    return "\n".join(lines)


async def run(options: argparse.Namespace, folder: Path) -> None:
    trl = TrlSide(options.trl_python, folder / "trl.log")
    found: list[Comparison] = []
    try:
        print(f"TRL's side: {trl.about['versions']}", flush=True)
        for scenario in await scenarios(folder, options):
            found.append(await compared(trl, scenario, options))
            if options.out:
                content = {
                    **trl.about,
                    "rounds": options.rounds,
                    "steps": options.steps,
                    "comparisons": [comparison.data() for comparison in found],
                }
                options.out.write_text(json.dumps(content, indent=2) + "\n")
    finally:
        trl.close()
    print(f"\npolicy-owned tokens kept for training per CPU-second, whole steps\n{table(found)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trl-python", required=True, help="the Python of TRL's environment")
    parser.add_argument("--model", type=Path, help="cold-started weights; default: made here")
    parser.add_argument("--cold-start", type=int, default=1500, help="steps, without --model")
    parser.add_argument("--recipe", default="when-to-search")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="of the recipe")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2, help="per side and round")
    parser.add_argument("--trial-steps", type=int, default=2, help="per variant of TRL")
    parser.add_argument("--limit-steps", type=int, default=8, help="to find the limit on a message")
    parser.add_argument("--only", default="", help="scenarios whose name holds this")
    parser.add_argument("--keep", type=Path, help="folder for weights and TRL's log")
    parser.add_argument("--out", type=Path, help="write the result as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(run(options, folder))


if __name__ == "__main__":
    main()
