"""Trackers: one file each. A tracker's package is an extra, and only its own file imports it."""
