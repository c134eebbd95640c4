"""Old and reference logprobs of samples, whatever order packing dealt them out in."""

from __future__ import annotations

from collections.abc import Sequence

from outfox.core.errors import ContractError
from outfox.core.ledger import Floats
from outfox.core.results import Annotations, Batch, Sample


class Notes:
    """Annotations of one update, looked up by the sample itself. Raises ContractError for gaps."""

    def __init__(
        self, batches: Sequence[Batch], annotations: Annotations | None, *, old_is_rollout: bool
    ) -> None:
        self._old_is_rollout = old_is_rollout
        given = annotations or Annotations()
        _check_annotated(batches, given)
        self._old = _by_sample(given.samples, given.old_logprobs)
        self._ref = _by_sample(given.samples, given.ref_logprobs)

    def old(self, samples: Sequence[Sample]) -> list[Floats] | None:
        if self._old is not None:
            return [self._old[id(sample)] for sample in samples]
        return [s.rollout_logprobs for s in samples] if self._old_is_rollout else None

    def ref(self, samples: Sequence[Sample]) -> list[Floats] | None:
        return None if self._ref is None else [self._ref[id(sample)] for sample in samples]


def _by_sample(
    samples: Sequence[Sample], arrays: Sequence[Floats] | None
) -> dict[int, Floats] | None:
    if arrays is None:
        return None
    return {id(sample): array for sample, array in zip(samples, arrays, strict=True)}


def _check_annotated(batches: Sequence[Batch], notes: Annotations) -> None:
    if notes.old_logprobs is None and notes.ref_logprobs is None:
        return
    known = {id(sample) for sample in notes.samples}
    if any(id(sample) not in known for batch in batches for sample in batch.samples):
        raise ContractError(
            "every sample of an annotated update was annotated; one was not: annotate the very "
            "samples that are packed"
        )
