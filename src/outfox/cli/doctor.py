"""`outfox doctor`: what this machine has, and what is missing with its remedy."""

from __future__ import annotations

import ast
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Annotated

import numpy as np
import typer

from outfox.cli import verb
from outfox.core.extras import extras
from outfox.core.folders import cache_folder

app = verb("Example: outfox doctor --json")

ENABLES: Mapping[str, str] = {
    "local": "train, evaluate and check rewards on this machine",
    "duckdb": "query run folders with SQL",
}
"""What each extra is for."""

_LEAST_DISK = 2.0
"""GB that a cold start and a run need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """An installable extra."""

    enables: str
    missing: tuple[str, ...]
    """Its packages that are not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that Outfox writes to, or will create."""

    path: str
    free_gb: float
    writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All that `outfox doctor` found out."""

    outfox: str
    python: str
    system: str
    torch: str | None
    torch_build: str | None
    """`CPU`, `CUDA 12.8`, `ROCm 6.3`."""
    cpus: int
    """Cores that this process may use."""
    threads: str
    """`OMP_NUM_THREADS`, or `unset`."""
    gflops: float
    """float32 matrix products, billions of operations per second."""
    extras: dict[str, Extra]
    cache: Folder
    here: Folder

    @property
    def findings(self) -> tuple[str, ...]:
        """What keeps the main job from running, each with its remedy."""
        found: list[str] = []
        missing = self.extras["local"].missing
        if missing:
            found.append(f"training needs {', '.join(missing)}: pip install 'outfox[local]'")
        for folder, remedy in ((self.cache, "set cache.dir"), (self.here, "set run.dir")):
            if not folder.writable:
                found.append(f"{folder.path} cannot be written: {remedy}=FOLDER when you train")
            elif folder.free_gb < _LEAST_DISK:
                found.append(
                    f"{folder.path} has {folder.free_gb:.1f} GB left of the {_LEAST_DISK:.0f} GB "
                    f"that a run needs: make room, or {remedy}=FOLDER when you train"
                )
        return tuple(found)


@app.command(epilog=app.info.epilog)
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Tell what this machine has and what is missing. Exit code 1 if training cannot run."""
    diagnosis = diagnose()
    if as_json:
        report = {**asdict(diagnosis), "findings": diagnosis.findings}
        typer.echo(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        typer.echo(_told(diagnosis))
    if diagnosis.findings:
        raise typer.Exit(1)


def diagnose() -> Diagnosis:
    """Look around; takes about a second, imports no torch."""
    torch, build = _torch()
    return Diagnosis(
        outfox=version("outfox"),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        torch=torch,
        torch_build=build,
        cpus=_usable_cpus(),
        threads=os.environ.get("OMP_NUM_THREADS", "unset"),
        gflops=_gflops(),
        extras={
            name: Extra(enables=ENABLES[name], missing=tuple(p for p in packages if not _has(p)))
            for name, packages in extras().items()
            if name in ENABLES
        },
        cache=_folder(cache_folder()),
        here=_folder(Path.cwd()),
    )


def _told(diagnosis: Diagnosis) -> str:
    torch = f"{diagnosis.torch} ({diagnosis.torch_build})" if diagnosis.torch else "not installed"
    rows = [
        ("outfox", diagnosis.outfox),
        ("python", f"{diagnosis.python} on {diagnosis.system}"),
        ("torch", torch),
        ("cpu", f"{diagnosis.cpus} cores, OMP_NUM_THREADS {diagnosis.threads}"),
        ("speed", f"{diagnosis.gflops:.0f} GFLOP/s in float32 matrix products"),
    ]
    for name, extra in diagnosis.extras.items():
        state = f"missing {', '.join(extra.missing)}" if extra.missing else "installed"
        rows.append((f"[{name}]", f"{state}: {extra.enables}"))
    for name, folder in (("cache", diagnosis.cache), ("here", diagnosis.here)):
        writable = "writable" if folder.writable else "not writable"
        rows.append((name, f"{folder.path}, {folder.free_gb:.0f} GB free, {writable}"))
    lines = [f"{name:<10}{value}" for name, value in rows]
    found = [f"! {finding}" for finding in diagnosis.findings]
    return "\n".join([*lines, *(found or ["all that `outfox train` needs is here"])])


def _torch() -> tuple[str | None, str | None]:
    """Version and build, read from torch's version file: importing it takes seconds."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return None, None
    tree = ast.parse((Path(spec.origin).parent / "version.py").read_text(encoding="utf-8"))
    said: dict[str, object] = {}
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value))
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value))
            ):
                said[name] = value
            case _:
                pass
    for key, label in (("cuda", "CUDA"), ("hip", "ROCm"), ("xpu", "XPU")):
        if said.get(key):
            return version("torch"), f"{label} {said[key]}"
    return version("torch"), "CPU"


def _has(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _usable_cpus() -> int:
    """Cores of this process's affinity mask where the system has one."""
    if os.name == "posix" and platform.system() == "Linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _gflops(size: int = 768, seconds: float = 1.0) -> float:
    """Best rate of repeated [size, size] products within `seconds`."""
    left = np.full((size, size), 0.5, dtype=np.float32)
    best = float("inf")
    end = perf_counter() + seconds
    while perf_counter() < end:
        start = perf_counter()
        np.matmul(left, left)
        best = min(best, perf_counter() - start)
    return 2 * size**3 / best / 1e9


def _folder(path: Path) -> Folder:
    """Space and permission of a folder, or of the nearest one above that exists."""
    there = next(each for each in (path, *path.parents) if each.is_dir())
    try:
        with tempfile.TemporaryFile(dir=there):
            writable = True
    except OSError:
        writable = False
    free = shutil.disk_usage(there).free / 1e9
    return Folder(path=str(path), free_gb=round(free, 2), writable=writable)
