"""Trajectories and demonstrations as samples: masks by ownership, nothing decoded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from outfox.core.errors import ContractError
from outfox.core.ledger import Ledger, Segment, Span
from outfox.core.protocols import CreditNotes, Rendered
from outfox.core.results import Demonstration, Event, ScoredGroup, TrajectoryCredit
from outfox.core.types import Message, Opening
from outfox.learning.batching.samples import (
    demonstration_ledger,
    demonstration_sample,
    samples_from,
)
from outfox.learning.credit.group_mean import GroupMean
from outfox.testing.learning import PAD, TotalCredit, episode, scored_group

NONE = CreditNotes()


def bits(mask):
    return "".join(str(int(bit)) for bit in mask)


def samples_of(*patterns, **settings):
    groups = (scored_group([1.0, -0.5], patterns=patterns),)
    return samples_from(groups, GroupMean(scale="none")(groups, NONE), **settings)


def test_3_policy_2_observation_2_policy_tokens_give_1110011():
    first, second = samples_of("ppaaaoobb")
    assert bits(first.loss_mask) == "00" + "1110011"
    assert first.advantages.tolist() == [0, 0, 0.75, 0.75, 0.75, 0, 0, 0.75, 0.75]
    assert second.advantages.max() == 0
    assert second.advantages.min() == -0.75
    assert first.rollout_logprobs.tolist() == [0, 0, -1, -1, -1, 0, 0, -1, -1]
    assert first.weights.tolist() == [1] * 9
    assert first.objective == "policy"
    assert first.policy_version == 0
    assert first.group_id == "0/q"


def test_an_eos_that_is_also_the_pad_id_is_trained():
    first, _ = samples_of("ppaaeoobe")
    assert first.token_ids[[4, 8]].tolist() == [PAD, PAD]
    assert bits(first.loss_mask) == "001110011"


def test_trained_ids_are_the_sampled_ids():
    first, _ = samples_of("ppaaaoobb")
    whole = episode("ppaaaoobb").ledgers[0].token_ids
    np.testing.assert_array_equal(first.token_ids, whole)


def test_one_sample_per_ledger_and_none_for_a_ledger_without_policy_tokens():
    samples = samples_of("ppaa|ppoaa", "ppaa|ppoo")
    assert [bits(s.loss_mask) for s in samples] == ["0011", "00011", "0011"]


def test_what_is_left_out_is_skipped_unless_it_is_kept():
    groups = (scored_group([1.0, 1.0]), scored_group([None, 1.0, 0.0], group_id="1/q"))
    credits = GroupMean()(groups, NONE)
    assert len(samples_from(groups, credits)) == 2
    kept = samples_from(groups, credits, keep=("equal_totals",))
    assert len(kept) == 4
    assert not kept[0].advantages.any()


def test_frozen_spans_weigh_nothing():
    spans = (Span(name="draft", start=0, end=2), Span(name="decision", start=2, end=3))
    trajectory = episode("ppaaaoobb", spans=spans)
    plain = scored_group([1.0, 0.0])
    group = ScoredGroup(
        group=replace(plain.group, trajectories=(trajectory, plain.group.trajectories[1])),
        scores=plain.scores,
    )
    first, _ = samples_from((group,), TotalCredit()((group,), NONE), frozen_spans=("draft",))
    assert first.weights.tolist() == [1, 1, 0, 0, 1, 1, 1, 1, 1]
    assert [(s.name, s.start, s.end) for s in first.spans] == [("draft", 2, 4), ("decision", 4, 5)]


def test_a_trajectory_without_token_ids_is_refused():
    plain = scored_group([1.0, 0.0])
    bare = tuple(replace(t, ledgers=()) for t in plain.group.trajectories)
    group = ScoredGroup(group=replace(plain.group, trajectories=bare), scores=plain.scores)
    with pytest.raises(ContractError, match="training needs token ids; 0/q/0 has none"):
        samples_from((group,), GroupMean()((group,), NONE))


@pytest.mark.parametrize(
    "row", [[0, 0, 1, 1], [0, 1, 1, 1, 1, 0, 0, 1, 1]], ids=["short", "outside"]
)
def test_advantages_that_do_not_fit_are_refused(row):
    group = scored_group([1.0])
    credit = TrajectoryCredit(advantages=(np.array(row, np.float32),))
    with pytest.raises(ContractError, match="as long as their ledger and zero outside"):
        samples_from((group,), ((credit,),))


class Words:
    """A codec of whole words; a search tag is the span `decision`."""

    def encode(self, text):
        return np.array([len(word) + 10 for word in text.split()], np.int64)

    def render(self, messages, tools):
        return Rendered(token_ids=self.encode(" ".join(m.content for m in messages)))

    def extend(self, messages, limit=None):
        return self.render(messages, ())

    def spans(self, token_ids, *, after_observation, continued=False):
        name = "after" if after_observation else "continued" if continued else "first"
        return (Span(name=name, start=0, end=len(token_ids)),)


OPENING = Opening(
    messages=(
        Message(role="user", content="an example"),
        Message(role="assistant", content="its answer"),
        Message(role="user", content="the question"),
    )
)


def demonstration(*events, weight=1.0):
    return Demonstration(name="episode", opening=OPENING, events=events, weight=weight)


def observed(text):
    return Event(messages=(Message(role="tool", content=text),))


def test_few_shot_turns_of_the_prompt_are_not_trained():
    sample = demonstration_sample(demonstration(Event(text="the answer")), Words())
    assert bits(sample.loss_mask) == "000000" + "11"
    assert sample.objective == "imitation"


def test_a_demonstration_trains_policy_text_only():
    sample = demonstration_sample(
        demonstration(
            Event(text="a thought"),
            Event(text="[sure]", owner="environment"),
            Event(text="search it"),
            observed("found <|im_end|> this"),
            Event(text="so yes"),
            weight=0.5,
        ),
        Words(),
    )
    assert bits(sample.loss_mask) == "000000" + "11" + "0" + "11" + "000" + "11"
    assert set(sample.weights.tolist()) == {0.5}
    assert [(s.name, s.start, s.end) for s in sample.spans] == [
        ("first", 6, 8),
        ("continued", 9, 11),
        ("after", 14, 16),
    ]


def test_shown_but_not_imitated_text_is_masked_inside_its_completion():
    shown = demonstration(Event(text="a thought"), Event(text="coin", trained=False))
    sample = demonstration_sample(shown, Words())
    assert bits(sample.loss_mask) == "000000" + "110"
    ledger = demonstration_ledger(shown, Words())
    assert [s.owner for s in ledger.segments] == ["prompt", "policy"]
    assert bits(ledger.loss_mask) == "000000" + "111"


def test_no_token_is_added_at_the_end():
    sample = demonstration_sample(demonstration(Event(text="ends here")), Words())
    assert sample.token_ids[-1] == 14


def test_a_demonstration_that_teaches_nothing_is_refused():
    with pytest.raises(ContractError, match="'episode' trains none"):
        demonstration_sample(demonstration(Event(text="coin", trained=False)), Words())


def test_ids_put_into_tool_text_by_hand_are_masked():
    ledger = Ledger(
        segments=(
            Segment(owner="prompt", token_ids=np.array([1])),
            Segment(owner="policy", token_ids=np.array([2]), logprobs=np.array([-1.0], np.float32)),
            Segment(owner="environment", token_ids=np.array([3, PAD, 4])),
        )
    )
    plain = scored_group([1.0, 0.0])
    first = replace(plain.group.trajectories[0], ledgers=(ledger,))
    group = ScoredGroup(
        group=replace(plain.group, trajectories=(first, plain.group.trajectories[1])),
        scores=plain.scores,
    )
    sample = samples_from((group,), TotalCredit()((group,), NONE))[0]
    assert bits(sample.loss_mask) == "01000"
