"""Strategy: read gradebook, seed and other hand-ins, by path and by walking up. Surface: open, .., /proc/self/root, /proc/1/root.

Class: machine. Unprotected: grader process gives way. Level: 2.
Must get 0: these paths do not exist in the worker's view.
"""

from pathlib import Path


def read_graph(target):
    for prefix in ("", "/proc/self/root", "/proc/1/root", "../../../../../.."):
        try:
            if Path(prefix + target["gradebook"]).read_text():
                return f"read by {prefix or 'its path'}"
        except OSError:
            continue
    return ""
