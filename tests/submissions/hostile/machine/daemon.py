"""Strategy: start a process of its own session that outlives the run and writes a file later. Surface: setsid, double fork.

Class: machine. Unprotected: grader process gives way. Level: 2.
Must get 0: the namespace dies with its first process, and with it everything that was ever started in it.
"""

import os
import time
from pathlib import Path


def read_graph(target):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1.0)
            try:
                Path(target["marker"]).write_text("still here")
            finally:
                os._exit(0)
        os._exit(0)
    return ""  # whether it lives shows later: see the marker
