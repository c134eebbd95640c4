"""Whatever a policy writes, an episode ends with a stop reason that fits what happened."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from outfox.core.types import EpisodeKey, Message, Observation, Opening, Task
from outfox.policies.codecs.tags import Tags
from outfox.policies.scripted import ScriptedPolicy
from outfox.rollout.episode import run_episode
from outfox.rollout.limits import Limits
from outfox.rollout.readings import confidence
from outfox.testing.codecs import FakeTokenizer

KEY = EpisodeKey(seed=0, step=0, group_id="0/0/t", sibling=0)
TASK = Task(task_id="t", prompt=(Message(role="user", content="Q"),), reference="Paris")
CODECS = st.sampled_from([None, Tags(FakeTokenizer()), Tags(FakeTokenizer(), pauses=True)])
TURNS = st.lists(
    st.sampled_from(
        [
            "<think>a : b</think>",
            "<think>",
            "</think>",
            "<search>q</search>",
            "<search>",
            "<search></search>",
            "<answer>x</answer>",
            "<answer></answer>",
            "<information>",
            "words",
        ]
    ),
    max_size=4,
).map("".join)


class World:
    """Answers calls; breaks at the `breaks`-th, ends at the `ends`-th."""

    def __init__(self, breaks: int, ends: int):
        self._breaks, self._ends, self._calls = breaks, ends, 0
        self.closed = False

    async def reset(self) -> Opening:
        return Opening(messages=TASK.prompt)

    async def step(self, message: Message) -> Observation:
        if not message.tool_calls:
            return Observation(done=True)
        self._calls += 1
        if self._calls == self._breaks:
            raise RuntimeError("broke")
        page = Message(role="tool", content="page " * 9)
        return Observation(messages=(page,), done=self._calls == self._ends)

    def final(self) -> int:
        return self._calls

    async def close(self) -> None:
        self.closed = True


@given(
    codec=CODECS,
    script=st.lists(TURNS, min_size=1, max_size=5),
    breaks=st.integers(1, 6),
    ends=st.integers(1, 6),
    allowed=st.integers(0, 2),
    window=st.integers(40, 300),
)
def test_the_stop_reason_fits_what_happened(codec, script, breaks, ends, allowed, window):
    world = World(breaks, ends)

    def said(task: Task, messages: tuple[Message, ...]) -> str:
        return script[sum(m.role == "assistant" for m in messages) % len(script)]

    trajectory = asyncio.run(
        run_episode(
            TASK,
            KEY,
            policy=ScriptedPolicy(said, codec=codec),
            environment=lambda task, seed: world,
            limits=Limits(max_turns=4, max_parse_errors=allowed, max_tokens=window),
            readings={"draft": confidence},
        )
    )
    assert world.closed
    turns, errors = trajectory.turns, [turn for turn in trajectory.turns if turn.error]
    assert all((turn.action is None) != (turn.error is None) for turn in turns)
    assert all(turn.observation is not None for turn in turns[:-1])
    last = turns[-1]
    match trajectory.stop_reason:
        case "answer":
            assert trajectory.answer == "x"
        case "done":
            assert last.observation.done
        case "error":
            assert trajectory.error == "RuntimeError: broke"
            assert len(trajectory.calls) == breaks
            assert last.observation is None
        case "malformed":
            assert len(errors) == allowed + 1
            assert last.error is not None
        case "max_turns":
            assert len(turns) == 4
        case "max_tokens":
            assert codec is not None
    if trajectory.stop_reason != "answer":
        assert trajectory.answer is None
    if trajectory.stop_reason != "error":
        assert trajectory.error is None
        assert trajectory.final_state == len(trajectory.calls)
    for ledger in trajectory.ledgers:
        shown = codec.decode(ledger.token_ids[ledger.loss_mask])
        assert shown == "".join(turn.text for turn in turns)
