"""The built-in world `when-to-search`."""

from outfox.worlds.when_to_search.demonstrations import Mix
from outfox.worlds.when_to_search.make import make
from outfox.worlds.when_to_search.noise import Noise
from outfox.worlds.when_to_search.setting import Sizes

part = make

__all__ = ["Mix", "Noise", "Sizes", "make", "part"]
