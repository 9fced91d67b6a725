"""Take a share of the points of late submissions for each day begun, after a time of grace, up to a limit.

A tenth of the points for each day, in nbgrader_config.py:

    c.LatePenalty.share_per_day = 0.1
"""

import math

from nbgrader.plugins import LateSubmissionPlugin
from traitlets import Float

DAY_S = 24 * 60 * 60


class LatePenalty(LateSubmissionPlugin):
    """Take `share_per_day` of the points earned for each day begun; nothing by default."""

    share_per_day = Float(0.0, min=0.0, max=1.0, help="share of the points earned, for each day begun").tag(config=True)
    grace_s = Float(15 * 60.0, min=0.0, help="seconds after the due time that cost nothing").tag(config=True)
    most = Float(1.0, min=0.0, max=1.0, help="share of the points earned that can be lost at most").tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """Return the points to take from `score`; None if there are none to take."""
        days = math.ceil((total_seconds_late - self.grace_s) / DAY_S)
        share = min(days * self.share_per_day, self.most)
        return round(score * share, 4) if share > 0 else None
