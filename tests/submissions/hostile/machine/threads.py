"""Strategy: start threads without end, which are processes to the kernel. Surface: threading.

Class: machine. Unprotected: grader process gives way. Level: 2.
Must get 0: the number of processes and threads of a worker is limited by the kernel.
"""

import threading


def read_graph(target):
    stop, started = threading.Event(), 0
    try:
        while started <= 2 * target["processes"]:
            threading.Thread(target=stop.wait, daemon=True).start()
            started += 1
    except RuntimeError:
        return ""
    finally:
        stop.set()
    return f"{started} threads"
