"""The page on several runs side by side."""

import re
from html.parser import HTMLParser

import pytest

from outfox.evaluation.contrast import contrast
from outfox.testing.run import made_up_comparison
from outfox.workbench.report.comparison import hops, render, shown, write_comparison


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    file, runs = made_up_comparison(tmp_path_factory.mktemp("runs"), steps=3, questions=24)
    return file, runs, contrast(file, runs)


@pytest.fixture(scope="module")
def page(made) -> str:
    _, runs, content = made
    return render(content, runs)


class Balance(HTMLParser):
    """Tags that were opened and not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def test_the_page_is_whole_and_needs_nothing_but_itself(page: str):
    balance = Balance()
    balance.feed(page)
    assert (balance.open, balance.wrong) == ([], [])
    assert "{{" not in page
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", page)
    assert "@import" not in page
    assert "width=device-width" in page


def test_it_says_what_each_variant_came_to(page: str, made):
    content = made[2]
    text = re.sub(r"<[^>]+>", " ", page)
    for name, of in content["variants"].items():
        assert name in text
        assert f"{of['after']['accuracy']['value']:.2f}" in text
        assert page.count(f'href="{name}-seed0/report.html"') == 1
    assert f"would take {hops(content['variants']):.2f}".rstrip("0") in text
    assert "What was asked" in text
    assert "outfox train when-to-search-contrast seeds=0,1" in text
    assert "readings: {}" in text


def test_every_curve_has_every_variant(page: str):
    plots = re.findall(r'<div class="plot"[^>]*aria-label="([^"]*)"', page)
    assert len(plots) == 6
    assert all(
        name in plot for plot in plots for name in ("default", "outcome-only", "reading-off")
    )


def test_rewards_are_not_compared_and_what_is_there_is_shown(made):
    blocks = [of["after"] for of in made[2]["variants"].values()]
    names = shown(blocks)
    assert names[:2] == ["accuracy", "j"]
    assert "calls_per_hop" in names
    assert not {"reward", "hops", "abstained", "closed_book_recall"} & set(names)
    assert shown([{**blocks[0], "followed_poison": {}}])[-1] == "followed_poison"


def test_a_comparison_of_one_variant_has_a_page(made, tmp_path):
    _, runs, content = made
    alone = {"outcome-only": content["variants"]["outcome-only"]}
    one = {**content, "variants": alone, "differences": {}, "ratios": {}, "asks": []}
    path = write_comparison(tmp_path, one, {"outcome-only": runs["outcome-only"]})
    text = path.read_text(encoding="utf-8")
    assert "Only one variant was run." in text
    assert "What was asked" not in text
