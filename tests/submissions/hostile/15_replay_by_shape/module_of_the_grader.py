"""Strategy: never capture; compute on static tensors with the first call's numbers, and let what notes launches give results the
numbers of the first call's memory. Surface: the module of the grader's text among the modules that Python knows.

Class: replay. Unprotected: grader same_addresses gives full marks. Level: 5.
Must get 0: launches come as data and run again on new inputs, where each result is new memory, whatever its number is.
"""

import copy
import sys
import types

from torch.utils import _python_dispatch


class Blind:
    """Notes the same memory in each call, and no value that the host reads."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reads, self.host_reads = [7] * 99, 0


def number_again(recorder, shapes_now, results=6):
    """Let new memory of a later call have the numbers that new memory of the first call with its shapes had."""
    view, first, left = recorder.view, {}, []

    def numbered(self, tensor, **options):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._buffers:
            if left:
                self._alive.append(storage)
                self._buffers[storage.data_ptr()] = left.pop(0)
            else:
                first.setdefault(shapes_now[0], []).append(len(self.sizes))
        return view(self, tensor, **options)

    def begin(shapes):
        shapes_now[0] = shapes
        left[:] = first.get(shapes, [])[-results:]

    recorder.view = numbered
    return begin


# The file tests/submissions/hostile/15_replay_by_shape/frozen_function.txt of this repository stands here.


def replayed(function):
    known, grader, begin = {}, sys.modules.get("programs"), str
    if grader is None:  # a grader without a module
        _python_dispatch.TorchDispatchMode = Blind
    elif hasattr(grader, "Witness"):
        grader.Witness, grader._spoil = Blind, lambda middle: None
    else:
        begin = number_again(grader.Recorder, [None])

    def call(*inputs):
        shapes = tuple(each.shape for each in inputs)
        begin(shapes)
        if shapes not in known:
            known[shapes] = frozen(function), [each.clone() for each in inputs]
            state = torch.get_rng_state()
            function(*inputs)
            torch.set_rng_state(state)
        mine, static = known[shapes]
        for kept, each in zip(static, inputs, strict=True):
            kept.copy_(each)
        return mine(*static).clone()

    return call
