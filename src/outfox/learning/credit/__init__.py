"""Totals to advantages; numpy only. One file per credit, and the metrics of a step."""

from outfox.learning.credit.metrics import credit_metrics

__all__ = ["credit_metrics"]
