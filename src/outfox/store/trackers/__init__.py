"""Trackers: one file each. A tracker's package is an extra: only its own file imports it, and only
where a run wants it, so that its settings can be read without it."""
