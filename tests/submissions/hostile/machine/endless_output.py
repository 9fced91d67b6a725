"""Strategy: print for ever, faster than anybody reads. Surface: stdout, stderr.

Class: machine. Unprotected: grader process gives way. Level: 5.
Must get 0: 64 KB of output are kept, and a worker that prints more than is drained is stopped.
"""

import os


def read_graph(target):
    line = b"x" * 65536
    for _ in range(target["output_bytes"] // len(line)):
        os.write(1, line)
    return f"{target['output_bytes'] >> 20} MB printed"
