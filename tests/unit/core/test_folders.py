from pathlib import Path

import pytest

from outfox.core.folders import cache_folder


def test_the_cache_folder_follows_the_user_s_setting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    assert cache_folder() == Path("somewhere") / "outfox"


def test_without_a_setting_it_is_in_the_home_folder(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder().is_absolute()
    assert cache_folder().name == "outfox"
