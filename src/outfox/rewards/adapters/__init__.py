"""Reward functions of other systems as signals, one file per system.

settings: {"reward.py:compute_score": {adapter: verl, range: [-1, 1]}}
"""
