"""A comparison in the terminal."""

from outfox.cli.display import Display
from outfox.cli.side_by_side import show
from outfox.evaluation.contrast import contrast
from outfox.testing.run import made_up_comparison


def test_a_comparison_is_told_in_tables_and_sentences(tmp_path, capsys):
    content = contrast(*made_up_comparison(tmp_path, steps=2, questions=24))
    for of in content["variants"].values():
        of["greedy"] = of["after"]
    show(content, Display())
    told = capsys.readouterr().err
    assert "24 held-out questions, after training, seeds 0, 1" in told
    assert "less outcome-only, paired" in told
    for row in (
        "Accuracy",
        "J",
        "Searches per hop",
        "Accuracy, greedy",
        "Searches, ratio",
        "stale",
    ):
        assert any(line.startswith(row) for line in told.splitlines()), row
    assert "one search per hop, always: 1.17 searches a question" in told
    value = content["variants"]["default"]["after"]["j"]["value"]
    assert f"default: J is {value:.3f} (" in told
    assert "default: searches over outcome-only's is " in told
