"""The built-in world `when-to-search`."""

from outfox.worlds.when_to_search.make import Noise, Sizes, make

part = make

__all__ = ["Noise", "Sizes", "make", "part"]
