"""Strategy: keep a copy of the function with the Python numbers of its first call, and compute eagerly. Surface: closures.

Class: replay. Unprotected: grader renumbered gives full marks. Level: 5.
Must get 0: the launches of a call are those of a capture that came as data, and few beside it.
"""

import copy
import types


def frozen(function):
    cells = tuple(types.CellType(copy.deepcopy(cell.cell_contents)) for cell in function.__closure__ or ())
    return types.FunctionType(function.__code__, function.__globals__, closure=cells)


def replayed(function):
    known = {}

    def call(*inputs):
        return known.setdefault(tuple(each.shape for each in inputs), frozen(function))(*inputs)

    return call
