"""A program: run a small recipe once, then once for every way to die, and compare what is left.

    python tests/crash/dying_runs.py FOLDER [--every N]      die at each (Nth) durable operation
    python tests/crash/dying_runs.py FOLDER --full           the same, but that the disk is full
    python tests/crash/dying_runs.py FOLDER --kills N        N kills at seeded instants

Prints one line for each death that did not end in the same run, and a count; exit code 1 if any.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

from deaths import Deaths, forked

from outfox.cli.train import resume, train

RECIPE = Path(__file__).parent / "smallest.yaml"
SAME = ("metrics.jsonl", "events.jsonl", "summary.json", "*.parquet", "model.safetensors")
"""What must be the same, byte for byte; clock readings are in timings.jsonl alone."""


def go(run: Path, cache: Path) -> None:
    """What a user does: begin, or go on where there is something to go on from."""
    if (run / "run.yaml").exists():
        resume(run)
    else:
        train(RECIPE, [f"run.dir={run}", f"cache.dir={cache}"])


def content(run: Path) -> dict[str, bytes]:
    """Relative name to bytes."""
    return {
        str(file.relative_to(run)): file.read_bytes()
        for pattern in SAME
        for file in sorted(run.rglob(pattern))
    }


def leftovers(run: Path) -> list[str]:
    return sorted(str(file.relative_to(run)) for file in run.rglob(".*"))


class Trial:
    """One folder to die in, again and again."""

    def __init__(self, place: Path) -> None:
        self.run, self.cache = place / "run", place / "cache"
        self._place = place

    def fresh(self) -> None:
        shutil.rmtree(self._place, ignore_errors=True)
        self._place.mkdir(parents=True)

    def live(self, deaths: Deaths | None = None, seconds: float | None = None) -> tuple[int, str]:
        def work() -> str:
            if deaths is not None:
                deaths.watch()
            if seconds is not None:
                threading.Thread(target=_kill_in, args=(seconds,), daemon=True).start()
            go(self.run, self.cache)
            return str(deaths.count) if deaths is not None else ""

        return forked(work)


def _kill_in(seconds: float) -> None:
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


def differences(trial: Trial, whole: dict[str, bytes]) -> list[str]:
    """Resume after a death: what differs from the run that nothing interrupted."""
    code, said = trial.live()
    if code:
        return [f"resuming failed: {said.strip().splitlines()[-1] if said.strip() else code}"]
    found = content(trial.run)
    differing = [n for n in sorted({*whole, *found}) if whole.get(n) != found.get(n)]
    return differing + leftovers(trial.run)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--full", action="store_true", help="the disk is full from there on")
    options = parser.parse_args()
    trial = Trial(options.folder.absolute() / "trial")
    trial.fresh()
    begun = time.monotonic()
    code, said = trial.live(Deaths(trial.run, trial.cache))
    if code:
        print(said)
        return 1
    took, operations, whole = time.monotonic() - begun, int(said), content(trial.run)
    print(f"{operations} durable operations in {took:.1f} s; {len(whole)} files are compared")
    draw = random.Random(0)
    if options.kills:
        instants = [draw.uniform(0, took) for _ in range(options.kills)]
        plan = [(f"after {s:.2f} s", None, s) for s in instants]
    else:
        numbers = range(1, operations + 1, options.every)
        plan = [(f"at operation {number}", number, None) for number in numbers]
    failures = 0
    for name, at, seconds in plan:
        trial.fresh()
        deaths = Deaths(trial.run, trial.cache, at=at, full=options.full) if at else None
        code, said = trial.live(deaths, seconds)
        told = code == 1 and "OutfoxError: the disk is full" in said
        if not (told if options.full else code in (0, -signal.SIGKILL)):
            wrong = [f"it ended with {code}: {said.strip().splitlines()[-1:]}"]
        else:
            wrong = differences(trial, whole)
        failures += bool(wrong)
        if wrong:
            print(f"death {name}: {', '.join(wrong)}", flush=True)
    print(f"{len(plan)} deaths, {failures} runs that came out otherwise")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
