"""The built-in world `rows`: tasks, passages and tools of the user's own."""

from outfox.worlds.rows.make import make

part = make

__all__ = ["make", "part"]
