"""`report.html`: what a run learned, on one page that needs nothing but itself.

page.py     the page: findings, before and after, curves, trajectories, settings
charts.py   curves and stacked shares as SVG
stories.py  which six trajectories are worth reading
episode.py  one trajectory: its tokens by owner, its reward part by part
page.html   frame, style and the little script
"""

from outfox.workbench.report.page import write_report

__all__ = ["write_report"]
