"""`report.html`: what a run learned, on one page that needs nothing but itself.

page.py     the page: findings, before and after, curves, trajectories, settings
charts.py   curves and stacked shares as SVG
stories.py  which six trajectories are worth reading
episode.py  one trajectory: its tokens by owner, its reward part by part
comparison.py  the page on several runs side by side
frame.py    templates, filled; page.html and comparison.html, page.css, page.js
"""

from outfox.workbench.report.page import write_report

__all__ = ["write_report"]
