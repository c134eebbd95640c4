from hypothesis import given
from hypothesis import strategies as st

from outfox.core.types import Message, Task
from outfox.worlds.rows.shown import Shown, gold_of
from outfox.worlds.rows.split import split


def row(number: int, gold: list[str]) -> Shown:
    task = Task(
        task_id=str(number),
        prompt=(Message(role="user", content="q"),),
        reference="a",
        metadata={"gold_evidence": gold} if gold else {},
    )
    return Shown(task=task, where="", answer="a", answerable=True, known=False, calls=())


PASSAGES = st.lists(st.sampled_from([f"p{n}" for n in range(12)]), max_size=2)


@given(st.lists(PASSAGES, min_size=4, max_size=20), st.integers(0, 5))
def test_no_passage_is_gold_on_both_sides(golds, seed):
    rows = [row(number, [*gold, f"own{number}"]) for number, gold in enumerate(golds[2:])]
    rows += [row(100 + number, []) for number in range(4)]
    test, train = split(rows, 0.25, seed)
    assert {r.task.task_id for r in (*test, *train)} == {r.task.task_id for r in rows}
    assert len(test) + len(train) == len(rows)
    assert len(test) >= round(0.25 * len(rows))

    def passages(side):
        return {name for each in side for name in gold_of(each.task)}

    assert not passages(test) & passages(train)


def test_a_chain_of_shared_passages_stays_together():
    rows = [row(0, ["a", "b"]), row(1, ["c"]), row(2, ["b", "c"]), row(3, ["d"]), row(4, [])]
    for seed in range(8):
        sides = split(rows, 0.2, seed)
        held = [side for side in sides if any(r.task.task_id == "0" for r in side)]
        assert {"0", "1", "2"} <= {r.task.task_id for r in held[0]}
