# pyright: standard, reportMissingImports=false, reportAttributeAccessIssue=false
"""MLflow: a file, a database or a server, as `uri` or `MLFLOW_TRACKING_URI` says."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import mlflow
from mlflow.entities import Metric, Param

from outfox.core.protocols import TrackedRun
from outfox.core.types import JSON

_REFUSED = re.compile(r"[^\w\-. /]")
_PARAMS = 100
"""Most parameters that MLflow takes at once."""
_LONGEST = 500
"""Characters of a parameter's value that any store keeps."""


@dataclass(slots=True, kw_only=True)
class MLflow:
    """A resumed run goes on under its id. Settings become parameters, such as `eval.questions`."""

    experiment: str = "outfox"
    """Experiment there."""
    uri: str | None = None
    """Default: MLflow's own, e.g. `sqlite:///mlflow.db` in the current folder."""
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the run."""
    samples: bool = True
    """Show a few episodes as text: artifacts `samples/step-000010-0.txt`."""
    _client: mlflow.MlflowClient = field(init=False)
    _id: str = field(init=False)

    def begin(self, run: TrackedRun) -> str:
        self._client = mlflow.MlflowClient(tracking_uri=self.uri)
        if run.id:
            self._client.update_run(run.id, status="RUNNING")
            self._id = run.id
            return self._id
        made = self._client.create_run(self._experiment(), tags=dict(self.tags), run_name=run.name)
        self._id = str(made.info.run_id)
        params = [Param(_name(key), value[:_LONGEST]) for key, value in _flat(run.config)]
        for start in range(0, len(params), _PARAMS):
            self._client.log_batch(self._id, params=params[start : start + _PARAMS])
        return self._id

    def log(self, step: int, metrics: Mapping[str, float], samples: Sequence[str]) -> None:
        now = int(time.time() * 1000)
        rows = [Metric(_name(name), value, now, step) for name, value in metrics.items()]
        self._client.log_batch(self._id, metrics=rows)
        if self.samples:
            for number, sample in enumerate(samples):
                self._client.log_text(self._id, sample, f"samples/step-{step:06d}-{number}.txt")

    def end(self, summary: Mapping[str, float] | None) -> None:
        self.log(0, summary or {}, ())
        self._client.set_terminated(self._id, "KILLED" if summary is None else "FINISHED")

    def _experiment(self) -> str:
        found = self._client.get_experiment_by_name(self.experiment)
        if found is not None:
            return str(found.experiment_id)
        return str(self._client.create_experiment(self.experiment))


def _name(name: str) -> str:
    """MLflow takes names that are a plain relative path; a signal of the user's may be no such."""
    parts = _REFUSED.sub("_", name).split("/")
    return "/".join(part for part in parts if part.strip("."))


def _flat(config: Mapping[str, JSON], at: str = "") -> Iterator[tuple[str, str]]:
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(cast("Mapping[str, JSON]", value), f"{at}{key}.")
        else:
            yield f"{at}{key}", str(value)


part = MLflow
