"""Strategy: write into the gradebook, and plant a link to it where the host will look. Surface: open, symlinks, hard links.

Class: machine. Unprotected: grader process gives way. Level: 2.
Must get 0: these paths do not exist in the worker's view, and nothing that it writes is looked at.
"""

import os
from pathlib import Path


def read_graph(target):
    gained = []
    try:
        Path(target["gradebook"]).open("a").write("everyone: 100")
        gained.append("written")
    except OSError:
        pass
    try:
        os.link(target["gradebook"], target["gradebook"] + ".link")
        gained.append("linked")
    except OSError:
        pass
    return ", ".join(gained)
