"""Strategy: replay a graph of copies, and compute eagerly by operators on lists, each with a truth value in one of its lists. Surface: launches with a truth value among their arguments seem to compare.

Class: replay. Unprotected: grader renumbered gives full marks. Level: 5.
Must get 0: only what gives or counts truth values compares, and a list is as many launches as it has tensors.
"""

from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.launches import Graph, warm_up


# The file tests/submissions/hostile/15_replay_by_shape/frozen_function.txt of this repository stands here.


class Unseen(TorchDispatchMode):
    """Run sums and products by operators that get a truth value beside, as if they compared."""

    def __init__(self, zeros, true):
        super().__init__()
        self.zeros, self.true = zeros, true

    def __torch_dispatch__(self, func, _types, args=(), kwargs=None):
        name = str(func)
        kwargs = kwargs or {}
        if name.startswith(("aten.mul.", "aten.add.", "aten.div_.", "aten.add_.", "aten.div.")):
            a, b = args
            if name == "aten.add_.Tensor":
                torch._foreach_addcmul_([a], [self.true], [self.true], value=b)
                return a
            if name.startswith("aten.div"):
                b = 1 / b
            out = self.zeros.clone()
            if "add" in name:
                torch._foreach_addcmul_([out], [a], [self.true])
                torch._foreach_addcmul_([out], [b], [self.true])
            elif isinstance(b, torch.Tensor):
                torch._foreach_addcmul_([out, self.zeros.clone()], [a, a], [b, self.true])
            else:
                torch._foreach_addcmul_([out], [a], [self.true], value=b)
            if name.startswith("aten.div_"):
                a.copy_(out)
                return a
            return out
        return func(*args, **kwargs)


def replayed(function):
    known = {}

    def call(*inputs):
        shapes = tuple(each.shape for each in inputs)
        if shapes not in known:
            zeros = torch.zeros(inputs[0].shape)
            true = zeros.flatten()[:1] == 0
            other = zeros.clone()
            with warm_up():
                other.copy_(zeros)
            graph = Graph()
            with graph:
                for _ in range(9):
                    other.copy_(zeros)
            known[shapes] = frozen(function), graph, zeros, true
        mine, graph, zeros, true = known[shapes]
        graph.replay()
        with Unseen(zeros, true):
            return mine(*inputs)

    return call
