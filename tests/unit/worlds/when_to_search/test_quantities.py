import pytest

from outfox.worlds.when_to_search.quantities import quantity


@pytest.mark.parametrize(
    ("value", "english", "chinese"),
    [
        (7, "7", "7"),
        (2944, "2.9 thousand", "2900"),
        (30_500, "30 thousand", "3万"),
        (99_600, "100 thousand", "10万"),
        (310_000, "310 thousand", "31万"),
        (999_999, "1 million", "100万"),
        (4_180_000, "4.2 million", "420万"),
        (67_890_000, "68 million", "6800万"),
        (212_215_030, "210 million", "2.1亿"),
        (1_411_778_724, "1.4 billion", "14亿"),
    ],
)
def test_two_significant_digits_and_at_most_two_words(value, english, chinese):
    assert " ".join(quantity(value, "en")) == english
    assert "".join(quantity(value, "zh")) == chinese
    assert len(quantity(value, "en")) <= 2 >= len(quantity(value, "zh"))
