"""Trajectories and demonstrations as training sequences, one per ledger.

    segments         prompt | policy | environment | policy
    token_ids        p p      a a a    o o           b b
    loss_mask        0 0      1 1 1    0 0           1 1
    advantages       0 0      A A A    0 0           A A
    weights          1 1      1 0 1    1 1           1 1     (the middle `a` lies in a frozen span)

Ids are the sampled ids and the mask is ownership: nothing is decoded, and no token is recognised by
its id (an EOS that the policy sampled is trained, also where the pad token is the same id).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from outfox.core.errors import ContractError
from outfox.core.ledger import Bools, Floats, Ledger, Segment, Span
from outfox.core.protocols import Codec
from outfox.core.results import Demonstration, Event, Sample, ScoredGroup, TrajectoryCredit
from outfox.core.types import Trajectory


def samples_from(
    groups: Sequence[ScoredGroup],
    credits: Sequence[Sequence[TrajectoryCredit]],
    *,
    frozen_spans: Collection[str] = (),
    keep: Collection[str] = (),
) -> tuple[Sample, ...]:
    """One sample per ledger that holds policy tokens.

    Trajectories that carry no signal are skipped, except for the reasons in `keep` (an entropy
    bonus or a KL term may still want them). Tokens in `frozen_spans` get weight 0. Raises
    ContractError when a trajectory has no token ids or its credit does not fit its ledgers.
    """
    samples: list[Sample] = []
    for group, own in zip(groups, credits, strict=True):
        for trajectory, credit in zip(group.group.trajectories, own, strict=True):
            if credit.left_out is None or credit.left_out in keep:
                samples += _samples(trajectory, credit, frozen_spans)
    return tuple(samples)


def _samples(
    trajectory: Trajectory, credit: TrajectoryCredit, frozen: Collection[str]
) -> list[Sample]:
    name = f"{trajectory.group_id}/{trajectory.sibling}"
    if trajectory.turns and not trajectory.ledgers:
        raise ContractError(
            f"training needs token ids; {name} has none: use a policy that keeps a ledger "
            "(an engine policy), chat and scripted policies can only be evaluated"
        )
    found: list[Sample] = []
    for k, (ledger, advantages) in enumerate(
        zip(trajectory.ledgers, credit.advantages, strict=True)
    ):
        mask = ledger.loss_mask
        if not mask.any():
            continue  # A rewritten history that the policy had no turn in.
        if len(advantages) != len(mask) or advantages[~mask].any():
            raise ContractError(
                "advantages are as long as their ledger and zero outside policy tokens; "
                f"{name} ledger {k}: {len(mask)} tokens, {len(advantages)} advantages"
            )
        spans = ledger.spans
        found.append(
            Sample(
                token_ids=ledger.token_ids,
                loss_mask=mask,
                rollout_logprobs=ledger.logprobs,
                advantages=advantages,
                weights=_weights(len(mask), spans, frozen),
                spans=spans,
                policy_version=ledger.policy_version,
                group_id=trajectory.group_id,
                returns=None if credit.returns is None else credit.returns[k],
            )
        )
    return found


def _weights(length: int, spans: Sequence[Span], frozen: Collection[str]) -> Floats:
    weights = np.ones(length, np.float32)
    for span in spans:
        if span.name in frozen:
            weights[span.start : span.end] = 0
    return weights


def demonstration_ledger(demonstration: Demonstration, codec: Codec) -> Ledger:
    """A demonstration as tokens: policy text is policy-owned, readings and observations are not.

    No EOS is added: the text ends where the demonstration does.
    """
    opening = codec.render(demonstration.opening.messages, demonstration.opening.tools)
    segments = [Segment(owner="prompt", token_ids=opening.token_ids)]
    after_observation = continued = False
    for run in _runs(demonstration.events):
        if run[0].messages:
            observed = codec.extend(run[0].messages).token_ids
            segments.append(Segment(owner="environment", token_ids=observed))
            after_observation, continued = True, False
        elif run[0].owner != "policy":
            segments.append(Segment(owner="environment", token_ids=codec.encode(run[0].text)))
        else:
            token_ids = np.concatenate([codec.encode(event.text) for event in run])
            spans = codec.spans(token_ids, after_observation=after_observation, continued=continued)
            segments.append(Segment(owner="policy", token_ids=token_ids, spans=spans))
            continued = True
    return Ledger(segments=tuple(segments))


def _runs(events: Sequence[Event]) -> list[list[Event]]:
    """Events by segment: neighbouring policy events are one completion, all others stand alone."""
    runs: list[list[Event]] = []
    for event in events:
        policy = event.owner == "policy" and not event.messages
        if policy and runs and runs[-1][0].owner == "policy" and not runs[-1][0].messages:
            runs[-1].append(event)
        else:
            runs.append([event])
    return runs


def demonstration_sample(demonstration: Demonstration, codec: Codec) -> Sample:
    """A sample to imitate: trained on policy-owned events that are marked so."""
    ledger = demonstration_ledger(demonstration, codec)
    mask = _imitated(demonstration, ledger, codec)
    if not mask.any():
        raise ContractError(
            f"a demonstration trains at least one token; '{demonstration.name}' trains none: "
            "mark a policy event as trained"
        )
    zeros = np.zeros(len(ledger), np.float32)
    return Sample(
        token_ids=ledger.token_ids,
        loss_mask=mask,
        rollout_logprobs=zeros,
        advantages=zeros,
        weights=np.full(len(ledger), demonstration.weight, np.float32),
        objective="imitation",
        spans=ledger.spans,
        group_id=demonstration.name,
    )


def _imitated(demonstration: Demonstration, ledger: Ledger, codec: Codec) -> Bools:
    """[T] True on policy tokens of trained events."""
    mask = ledger.loss_mask
    if all(event.trained for event in demonstration.events):
        return mask
    policy = [e for e in demonstration.events if e.owner == "policy" and not e.messages]
    wanted = [np.full(len(codec.encode(event.text)), event.trained) for event in policy]
    mask[mask] = np.concatenate(wanted)
    return mask
