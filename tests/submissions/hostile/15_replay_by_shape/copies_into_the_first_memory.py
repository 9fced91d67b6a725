"""Strategy: keep a copy of the function with the numbers of its first call; compute eagerly, and copy each result into the memory that the first call left. Surface: the launches of such a call are those by which the simulator replays.

Class: replay. Unprotected: grader renumbered gives full marks. Level: 5.
Must get 0: the launches of a call are those of a capture that came as data, and few beside it; copies make no other launch a replay.
"""

from collections import Counter
import copy
import types

from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.launches.launch_record import reserves, starts_nothing, written_by


class Pool(TorchDispatchMode):
    """Runs eagerly; each new result is copied into memory that the first call of these shapes left."""

    def __init__(self, kept):
        super().__init__()
        self.kept, self.seen = kept, Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result, options = func(*args, **(kwargs or {})), kwargs or {}
        if not isinstance(result, torch.Tensor) or written_by(func, args, options):
            return result
        empty = reserves(func)
        if starts_nothing(func, args, options, result) and not empty:
            return result
        key = str(func), result.shape
        self.seen[key] += 1
        key = *key, self.seen[key]
        if key not in self.kept:
            self.kept[key] = result.detach()
        elif not empty:
            self.kept[key].data.copy_(result)
        return self.kept[key].detach()



def frozen(function):
    cells = tuple(types.CellType(copy.deepcopy(cell.cell_contents)) for cell in function.__closure__ or ())
    return types.FunctionType(function.__code__, function.__globals__, closure=cells)


def replayed(function):
    known = {}

    def call(*inputs):
        key = tuple(each.shape for each in inputs)
        new = key not in known
        if new:
            known[key] = frozen(function), [each.clone() for each in inputs], {}
        mine, static, kept = known[key]
        for old, each in zip(static, inputs, strict=True):
            old.copy_(each)
        with Pool(kept):
            result = mine(*static)
        return result.clone()

    return call
