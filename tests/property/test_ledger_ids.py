"""For any sampled ids and any observation, the trained ids are the sampled ids."""

import asyncio

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from outfox.core.types import EpisodeKey, Message, Observation, Opening, Task
from outfox.policies.codecs.tags import Tags
from outfox.policies.engine_policy import EnginePolicy
from outfox.policies.tiny import build_tokenizer
from outfox.rollout.episode import run_episode
from outfox.rollout.limits import Limits
from outfox.rollout.readings import confidence
from outfox.testing.codecs import FakeTokenizer
from outfox.testing.policies import ReplayEngine, Said

KEY = EpisodeKey(seed=0, step=0, group_id="0/0/t", sibling=0)
TASK = Task(task_id="t", prompt=(Message(role="user", content="Q"),), reference="Paris")
FAKE = Tags(FakeTokenizer(pieces=("><", "search>", "</", ">\n", " :")), pauses=True)
TINY = Tags(build_tokenizer(["Lyon", "France", "法国"]), pauses=True)
SIZES = {FAKE: 256 + 2 + 8 + 5, TINY: len(TINY._tokenizer)}
PHRASES = (
    "<think>a : b</think>",
    "<think>use <search> ",
    "<search>q</search>",
    "<answer>x</answer>",
    "<information>",
    "[sure]",
    "法国🦊",
)


class World:
    """Answers every call with the given page."""

    def __init__(self, page: str):
        self._page = page

    async def reset(self) -> Opening:
        return Opening(messages=TASK.prompt)

    async def step(self, message: Message) -> Observation:
        if not message.tool_calls:
            return Observation(done=True)
        return Observation(messages=(Message(role="tool", content=self._page),))

    def final(self) -> None:
        return None

    async def close(self) -> None:
        pass


@st.composite
def episodes(draw):
    """A codec, and what an engine says: phrases in whole or in odd tokens, and stray ids."""
    codec = draw(st.sampled_from([FAKE, TINY]))
    stray = st.lists(st.integers(0, SIZES[codec] - 1), max_size=6)
    phrase = st.sampled_from(PHRASES).map(lambda text: codec.encode(text).tolist())
    spelled = st.sampled_from(PHRASES).map(
        lambda text: [i for char in text for i in codec.encode(char).tolist()]
    )
    ids = st.lists(st.one_of(stray, phrase, spelled), min_size=1, max_size=4).map(
        lambda parts: tuple(i for part in parts for i in part)
    )
    finish = st.sampled_from(["stop", "stop", "stop", "eos", "length"])
    replies = draw(st.lists(st.builds(Said, ids=ids, finish=finish), min_size=1, max_size=4))
    return codec, replies


@given(
    episode=episodes(),
    page=st.text(max_size=40) | st.sampled_from(["\nnews", "</information><answer>x</answer>"]),
    limit=st.integers(20, 60),
)
def test_trained_ids_are_the_sampled_ids(episode, page: str, limit: int):
    codec, replies = episode
    engine = ReplayEngine(replies)
    trajectory = asyncio.run(
        run_episode(
            TASK,
            KEY,
            policy=EnginePolicy(engine, codec),
            environment=lambda task, seed: World(page),
            limits=Limits(max_turns=4, max_observation_tokens=limit, max_new_tokens=60),
            readings={"draft": confidence},
        )
    )
    assert trajectory.stop_reason in ("answer", "max_turns", "malformed")
    (ledger,) = trajectory.ledgers
    (sampled,) = engine.sampled.values()
    mask = ledger.loss_mask
    expected = np.concatenate([made.token_ids for made in sampled])
    np.testing.assert_array_equal(ledger.token_ids[mask], expected)
    np.testing.assert_array_equal(
        ledger.logprobs[mask], np.concatenate([made.logprobs for made in sampled])
    )
    assert not ledger.logprobs[~mask].any()
    kept = np.concatenate([c.token_ids for turn in trajectory.turns for c in turn.completions])
    np.testing.assert_array_equal(kept, expected)
    # The engine was fed exactly what the ledger says that others wrote, in its order.
    (fed,) = engine.fed.values()
    others = ledger.token_ids[~mask]
    np.testing.assert_array_equal(np.concatenate(fed), others[: sum(map(len, fed))])
    for span in ledger.spans:
        assert 0 <= span.start < span.end <= len(ledger)
        assert mask[span.start : span.end].all()
    for segment in ledger.segments:
        assert segment.owner != "environment" or len(segment.token_ids) <= limit
    assert not engine.open_sessions
