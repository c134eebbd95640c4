import logging
from dataclasses import replace

import pytest

from outfox.cli.display import Display
from outfox.evaluation.intervals import NOT_MEASURED, Estimate
from outfox.evaluation.metrics import measure
from outfox.testing.run import made_up_run

LOG = logging.getLogger("outfox.rollout.group")


def test_a_warning_that_comes_back_is_shown_once(capsys: pytest.CaptureFixture[str]):
    display = Display()
    with display.warnings():
        LOG.warning("0 of %d [turns] parsed", 3)
        LOG.warning("0 of %d [turns] parsed", 4)
        LOG.warning("another one")
        LOG.info("not for everyone")
    assert capsys.readouterr().err == "warning: 0 of 3 [turns] parsed\nwarning: another one\n"
    with display.warnings():
        LOG.warning("0 of %d [turns] parsed", 5)
    assert capsys.readouterr().err == "warning: 0 of 5 [turns] parsed\n"
    assert logging.getLogger("outfox").handlers == []


def test_without_a_terminal_a_bar_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]):
    with Display().bar("cold start", 12) as bar:
        for done in range(1, 13):
            bar.to(done, f"nll {done}" if done > 4 else "")
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "cold start",
        "  5/12  nll 5",
        "  10/12  nll 10",
        "  12/12  nll 12",
    ]
    assert told.out == ""


def test_a_quiet_display_says_nothing(capsys: pytest.CaptureFixture[str]):
    display = Display(quiet=True)
    display.say("hello")
    with display.bar("cold start", 1) as bar, display.warnings():
        bar.to(1, "done")
        LOG.warning("hidden")
    assert capsys.readouterr().err == ""


def test_before_and_after_are_told_by_kind(tmp_path, capsys: pytest.CaptureFixture[str]):
    run = made_up_run(tmp_path / "run", steps=1, questions=60)
    before, after = (
        measure(run.evaluation(name).groups, closed_book_recall=Estimate(value=0.5, n=10))
        for name in ("before", "after")
    )
    Display().compare(before, after)
    told = capsys.readouterr().err
    assert "60 held-out questions" in told
    for name in ("accuracy", "over-search", "wrong, not abstained", "closed-book recall", "J"):
        assert name in told
    rows = {line.split("  ")[0].strip() for line in told.splitlines()}
    assert set(after.by_kind) <= rows
    assert {"typed_match", "needless_calls"} <= rows
    Display().compare(None, after)
    assert "–" in capsys.readouterr().err
    noise = ("right after a failed call", "other query after a failure", "poison followed")
    quiet = replace(
        after,
        recovery=NOT_MEASURED,
        changed_queries=NOT_MEASURED,
        followed_poison=NOT_MEASURED,
        verified_conflict=NOT_MEASURED,
    )
    Display().compare(quiet, quiet)
    told = capsys.readouterr().err
    assert not [name for name in (*noise, "conflicts verified") if name in told]
    measured = dict.fromkeys(
        ("recovery", "changed_queries", "followed_poison", "verified_conflict"),
        Estimate(value=0.5, low=0.25, high=0.75, n=4),
    )
    Display().compare(quiet, replace(after, **measured))
    told = capsys.readouterr().err
    assert all(name in told for name in (*noise, "conflicts verified"))
    assert told.count(".25 to .75") >= 4
