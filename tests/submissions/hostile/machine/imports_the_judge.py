"""Strategy: import the judging half of the grader, or read its files where the project lies. Surface: sys.path, open.

Class: machine. Unprotected: grader process gives way. Level: 4.
Must get 0: a worker sees the protocol and the worker's half only.
"""

from pathlib import Path


def read_graph(target):
    try:
        if Path(target["root"], "autograder", "host", "judge.py").read_text():
            return "its files"
    except OSError:
        pass
    import autograder.host

    return autograder.host.__name__
