"""Strategy: start processes without end. Surface: os.fork.

Class: machine. Unprotected: grader process gives way. Level: 2.
Must get 0: the number of processes of a worker is limited by the kernel.
"""

import os
import signal


def read_graph(target):
    children = []
    try:
        while len(children) <= 2 * target["processes"]:
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            children.append(child)
    except OSError:
        return ""
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return f"{len(children)} processes"
