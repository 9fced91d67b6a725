"""Strategy: take more memory in processes that each stay below the limit. Surface: fork.

Class: machine. Unprotected: grader process gives way. Level: 2.
Must get 0: memory is counted for all processes of a worker together, by a control group or a watchdog.
"""

import os
import time


def read_graph(target):
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            held = bytearray(b"x") * (target["memory_bytes"] // 2)
            time.sleep(3.0)
            os._exit(0 if held else 1)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return "4 times half the limit" if codes == [0, 0, 0, 0] else ""
