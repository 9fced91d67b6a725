"""Strategy: replace the class that notes operators by one that notes the same memory in each call, and compute eagerly with the
first call's numbers. Surface: the class from which the grader's text derives its witness.

Class: replay. Unprotected: grader same_addresses gives full marks. Level: 5.
Must get 0: only launches that were written down run on the new inputs, and without them there is no result.
"""

from torch.utils import _python_dispatch


class Blind:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reads = [7] * 99


_python_dispatch.TorchDispatchMode = Blind


# The file tests/submissions/hostile/15_replay_by_shape/frozen_function.txt of this repository stands here.


def replayed(function):
    known = {}

    def call(*inputs):
        return known.setdefault(tuple(each.shape for each in inputs), frozen(function))(*inputs).clone()

    return call
