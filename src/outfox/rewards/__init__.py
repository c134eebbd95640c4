"""What a trajectory is worth: matchers, signals, and the rubric tree that combines them.

Trajectory ─signals─▶ SignalResult ─rubric (gates, outcome, deductions)─▶ Score
"""
