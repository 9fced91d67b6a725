"""Strategy: keep a copy of the function with the Python numbers of its first call, and compute eagerly. Surface: closures.

Class: replay. Unprotected: grader renumbered gives full marks. Level: 5.
Must get 0: the launches of a call are those of a capture that came as data, and few beside it.
"""

# The file tests/submissions/hostile/15_replay_by_shape/frozen_function.txt of this repository stands here.


def replayed(function):
    known = {}

    def call(*inputs):
        return known.setdefault(tuple(each.shape for each in inputs), frozen(function))(*inputs)

    return call
