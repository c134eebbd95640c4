"""`comparison.json` from run folders, and what it says to what was asked."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from outfox.core.comparison import Ask, ComparisonFile, load_comparison
from outfox.core.errors import ConfigError
from outfox.evaluation.asks import answer, fixed, interval, standing
from outfox.evaluation.contrast import check_asks, contrast
from outfox.evaluation.metrics import measure
from outfox.store.run_folder import RunFolder
from outfox.testing.run import made_up_comparison


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    return made_up_comparison(tmp_path_factory.mktemp("runs"), steps=2, questions=24)


@pytest.fixture(scope="module")
def content(made):
    return contrast(*made)


def test_it_names_what_was_run(made, content):
    file: ComparisonFile = made[0]
    assert content["comparison"] == content["base"] + "-contrast" == "when-to-search-contrast"
    assert content["command"] == "outfox train when-to-search-contrast seeds=0,1"
    assert (content["seeds"], content["against"]) == ([0, 1], "outcome-only")
    assert (content["questions"], content["samples"], content["steps"]) == (24, 2, 2)
    assert list(content["variants"]) == list(file.comparison.variants)
    default = content["variants"]["default"]
    assert default["runs"] == {"0": "default-seed0", "1": "default-seed1"}
    assert content["variants"]["reading-off"]["settings"]["readings"] == {}
    assert json.loads(json.dumps(content)) == content


def test_its_numbers_are_those_of_the_runs(made, content):
    runs = made[1]["default"]
    values = [measure(run.evaluation("after").groups).accuracy.value for run in runs.values()]
    default = content["variants"]["default"]
    assert default["after"]["accuracy"]["value"] == pytest.approx(sum(values) / 2, abs=1e-5)
    assert [default["by_seed"][s]["accuracy"] for s in "01"] == pytest.approx(values)
    other = content["variants"]["outcome-only"]["after"]["accuracy"]["value"]
    less = content["differences"]["default"]["accuracy"]
    assert less["value"] == pytest.approx(default["after"]["accuracy"]["value"] - other, abs=1e-4)
    assert less["low"] <= less["value"] <= less["high"]
    assert set(content["differences"]) == set(content["ratios"]) == {"default", "reading-off"}
    assert set(default) >= {"before", "after", "by_kind"}
    assert "greedy" not in default
    kind = default["by_kind"]["two hops"]
    assert kind["n"] == 4
    assert set(kind["after"]) == {"accuracy", "calls", "abstained"}


def test_only_seeds_that_every_variant_has_are_compared(made):
    file, runs = made
    found = contrast(file, {**runs, "default": {1: runs["default"][1]}})
    assert found["seeds"] == [1]


def test_an_evaluation_that_a_run_lacks_is_left_out(made, tmp_path: Path):
    file, runs = made
    bare = {name: {0: RunFolder.open(of[0].path)} for name, of in runs.items()}
    hidden = bare["default"][0].path / "evaluations" / "before"
    hidden.rename(tmp_path / "before")
    try:
        found = contrast(file, bare)
    finally:
        (tmp_path / "before").rename(hidden)
    assert "before" not in found["variants"]["default"]
    assert set(found["variants"]["default"]["by_kind"]["stale"]) == {"n", "after"}


@pytest.mark.parametrize(
    ("bound", "said"),
    [(-1.0, "holds"), (None, "holds on average"), (1.0, "does not hold")],
)
def test_what_was_asked_is_answered(made, bound, said):
    file, runs = made
    known = contrast(file, runs)["differences"]["default"]["accuracy"]
    least = (known["value"] + known["low"]) / 2 if bound is None else bound
    asked = replace(file.comparison, asks=(Ask(difference="accuracy", at_least=least),))
    rows = contrast(replace(file, comparison=asked), runs)["asks"]
    assert [row["variant"] for row in rows] == ["default", "reading-off"]
    assert standing(rows[0]) == said
    told = answer(rows[0], "outcome-only", "accuracy")
    assert told.startswith("default: accuracy less that of outcome-only is ")
    assert told.endswith(f"asked to be at least {least:g}: {said}")


def test_a_ratio_at_most_is_answered(made):
    file, runs = made
    asked = replace(
        file.comparison, asks=(Ask(ratio="calls", at_most=9), Ask(value="j", at_most=-3))
    )
    first, second, *_ = contrast(replace(file, comparison=asked), runs)["asks"]
    assert (first["of"], first["at_most"], first["holds"], first["surely"]) == (
        "ratio",
        9,
        True,
        True,
    )
    assert (second["measure"], second["holds"], second["surely"]) == ("j", False, False)


def test_an_unknown_measure_is_told():
    with pytest.raises(ConfigError, match=r"asks.0: 'acuracy' is no measure. Did you mean 'accura"):
        check_asks([Ask(value="acuracy", at_least=1)])
    check_asks([Ask(value="closed_book_recall", at_least=1), Ask(ratio="calls", at_most=1)])
    with pytest.raises(ConfigError, match=r"asks.0: 'closed_book_recall' is no measure"):
        check_asks([Ask(ratio="closed_book_recall", at_least=1)])


@pytest.mark.parametrize(
    "name",
    [
        "when-to-search-contrast",
        "when-to-search-contrast-zh",
        "when-to-search-noise",
    ],
)
def test_shipped_comparisons_ask_for_what_there_is(name: str):
    found = load_comparison(name)
    assert found is not None
    check_asks(found.comparison.asks)


def test_numbers_are_told_without_a_minus_before_zero():
    assert (fixed(-0.0004), fixed(-0.25, 2), fixed(3, 1)) == ("0.000", "-0.25", "3.0")
    assert interval({"value": 0.5, "low": 0.25, "high": 1.0}, 2) == "0.50 (0.25 to 1.00)"
    assert interval({"value": 0.5, "low": None, "high": None}, 2) == "0.50"
