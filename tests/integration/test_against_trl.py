"""The benchmark against TRL: Outfox's side and the comparison, in a small world and without TRL."""

import json
from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RECIPE = Path(__file__).parent / "recipes" / "small.yaml"
LIMIT = 16


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module


@pytest.fixture
def scenario(load, trained: str):
    return load("both_sides").Scenario(
        name="multi-turn",
        model=trained,
        turns=3,
        new_tokens=LIMIT,
        window=224,
        recipe=str(RECIPE),
    )


async def taken(steps):
    return [step async for step in steps]


async def test_steps_are_counted_as_the_update_saw_them(load, scenario):
    both, ours = load("both_sides"), load("outfox_side")
    for step, result in await taken(ours.outfox_steps(scenario, 2)):
        episodes = [t for group in result.groups for t in group.group.trajectories]
        assert len(episodes) == both.BATCH
        assert step.cpu > 0
        assert step.sampled == sum(t.policy_tokens for t in episodes)
        assert 0 < step.tokens <= step.sampled
        assert step.calls == sum(len(t.results) for t in episodes) / both.BATCH
        for group in result.groups:
            for played, score in zip(group.group.trajectories, group.scores, strict=True):
                assert score.total == both.points(
                    played.answer or "", played.policy_text, both.gold(played.task)
                )


async def test_a_random_model_never_ends_its_messages(load, scenario, tmp_path: Path):
    both, ours = load("both_sides"), load("outfox_side")
    folder = ours.random_weights(tmp_path / "random", scenario)
    endless = replace(scenario, model=str(folder), endless=True, turns=2)
    model = both.assembled(endless).model.model
    assert abs(sum(p.numel() for p in model.parameters()) / ours.PARAMETERS - 1) < 0.01
    ((step, result),) = await taken(ours.outfox_steps(endless, 1))
    assert step.tokens == step.sampled == both.BATCH * 2 * LIMIT
    for played in (t for group in result.groups for t in group.group.trajectories):
        assert [len(turn.text) > 0 for turn in played.turns] == [True, True]
        assert played.turns[0].observation.messages[0].content


async def test_the_limit_holds_nearly_all_messages_that_end(load, scenario):
    limit = await load("outfox_side").sufficient(replace(scenario, new_tokens=40), 1)
    assert 3 <= limit <= 40


async def test_weights_are_made_by_a_cold_start(load, scenario, tmp_path: Path):
    ours = load("outfox_side")
    folder = await ours.cold_started(
        tmp_path / "policy", steps=2, recipe=str(RECIPE), overrides=["cold_start.items=4"]
    )
    begun = replace(scenario, model=str(folder), turns=1)
    ((step, _),) = await taken(ours.outfox_steps(begun, 1))
    assert step.sampled > 0


class FakeTrl:
    """Answers as TRL's process does; a variant with pages fails."""

    def __init__(self, step, failure: type[Exception]):
        self._step, self._failure = step, failure
        self.begun: list[str] = []

    def begin(self, scenario, variant, steps):
        self.begun.append(variant["name"])
        if "paged" in variant:
            raise self._failure("ValueError: no pages")

    def steps(self, count):
        return [self._step] * count

    def end(self):
        pass


async def test_rounds_are_compared_with_the_best_variant(load, scenario, capsys):
    both, benchmark = load("both_sides"), load("against_trl")
    step = both.Step(cpu=1000.0, tokens=10, sampled=10, calls=1.0, reward=0.5)
    trl = FakeTrl(step, benchmark.TrlFailed)
    options = Namespace(rounds=2, steps=1, trial_steps=1)
    found = await benchmark.compared(trl, scenario, options)
    names = [variant["name"] for variant in benchmark.VARIANTS]
    assert trl.begun == [*names, names[0]]
    assert set(found.trials.values()) == {0.0, 0.01}
    content = found.data()
    assert content["ratio"]["median"] > 1
    assert content["outfox"]["steps"] == content["trl"]["steps"] == 2
    assert content["scenario"] == json.loads(json.dumps(asdict(scenario)), object_hook=tupled)
    assert "multi-turn" in benchmark.table([found])
    assert "no pages" in capsys.readouterr().out


def tupled(content: dict) -> dict:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in content.items()}


def test_an_answer_is_worth_more_than_any_text(load):
    both = load("both_sides")
    assert both.answer_in("<think>a</think><answer>Paris</answer>") == "Paris"
    wrong = [both.points("Rome", text, ["paris"]) for text in ("a", "b", "c")]
    assert len(set(wrong)) == 3
    assert max(wrong) < 0.02
    assert both.points(" Paris ", "a", ["paris"]) >= 1
