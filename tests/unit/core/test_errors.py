from outfox.core.errors import did_you_mean


def test_the_closest_name_is_offered_else_all_of_them():
    assert did_you_mean("stpes", ["steps", "seed"]) == " Did you mean 'steps'?"
    assert did_you_mean("zzz", ["b", "a"]) == " Known: a, b."
    assert did_you_mean("zzz", []) == ""
