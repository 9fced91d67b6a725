"""Operands that fit the functions that a graph may call: one line is tried after the other."""

from collections.abc import Callable
from typing import Any

import torch

# f, b, i, c: tensors of float32, bool, int64 and complex64 of these sizes.
LINES = """
f(6, 8),
f(6, 8), f(6, 8)
f(6, 8), 2
f(6, 8), f()
f(6, 8), 1
f(6, 8), [1]
f(6, 8), f(6, 8), f(6, 8)
f(6, 8), f(6, 8), 0
f(6, 8), f(6, 8), 1
f(6, 8), f(6, 8), 2
f(6, 8), f(6, 8), "sum"
f(6, 8), f(6, 8), None, None, "none"
f(6, 8), f(6, 8), None, None, None, "sum"
2.0, f(6, 8)
f(6, 8), 0.5, 2.0
f(6, 8), 0, 1
f(6, 8), [1, 0]
f(6, 8), (2, 3), (1, 0)
f(6, 8), 0, 1, 2
f(6, 8), 1, 0, 2
f(6, 8), 1, 0, 1
f(6, 8), 0, 0, 2, 1
f(6, 8), [2, 2]
f(6, 8), [48]
f(6, 8), 1, [2, 4]
f(6, 8), [3, 5]
f(6, 8), [3, 5], 1
f(6, 8), torch.float64
f(6, 8), torch.bfloat16
f(6, 8), "none"
f(6, 8), None
f(6, 8), None, [1], True
f(6, 8), 2, [1], False
f(6, 8), [1], True
f(6, 8), 0.5, True
f(6, 8), 0.5, False
f(6, 8), 0.1, 20.0
f(6, 8), 1, False
f(6, 8), -1, f(6, 8)
f(6, 8), f(6, 8), 1, torch.float32
f(6, 8), f(6, 8), 0.1
f(6, 8), f(8)
f(6, 8), f(1)
f(6, 8), f(6), f(6)
f(6, 8), 0, i(5)
f(6, 8), i(5)
f(6, 8), 1, i(6, 5)
f(6, 8), 1, i(6, 5), f(6, 5)
f(6, 8), 1, i(6, 5), 1.0
f(6, 8), 1, i(6, 5), f(6, 5), "sum"
f(6, 8), 0, i(5), f(5, 8)
f(6, 8), 0, i(5), 1.0
f(6, 8), 0, i(5), f()
f(6, 8), [i(5)]
f(6, 8), [i(5)], f(5, 8)
f(6, 8), b(6, 8), 2.0
f(6, 8), b(6, 8), f()
f(6, 8), b(6, 8), f(48)
b(6, 8), f(6, 8), f(6, 8)
b(6, 8), f(6, 8), 2.0
b(6, 8), 2.0, f(6, 8)
b(6, 8), 2.0, 3.0
b(6, 8),
b(6, 8), b(6, 8)
b(6, 8), True
i(6, 8),
i(6, 8), i(6, 8)
i(6, 8), 2
f(6, 8), [2, 6, 8]
f(6, 8), f(8, 6)
f(6, 5), f(6, 8), f(8, 5)
f(5, 8), f(6, 8), f(5, 8)
f(8), f(8)
f(2, 6, 8), f(2, 8, 5)
f(2, 6, 5), f(2, 6, 8), f(2, 8, 5)
f(6, 8), f(5, 8), f(5)
f(6, 8), f(6, 5), f(7, 8, 5)
[f(6, 8), f(6, 8)],
[f(6, 8), f(6, 8)], 1
[f(8), f(8)],
(6, 8),
(6, 8), 2.0
6, 8
9,
1, 9
1, 9, 2
0.0, 1.0, 9
f(),
f(6, 8), (8,)
f(6, 8), (8,), f(8), f(8)
f(6, 8), (8,), f(8), f(8), 1e-5
f(6, 8), [8], f(8)
f(6, 8), f(6, 8), [8], f(6, 1), f(6, 1), f(8), f(8), [True, True, True]
i(5), f(6, 8)
f(6, 8), i(5), i(2)
f(5, 8), i(5), 6, -1, False
f(6, 8), i(6)
f(6, 8), i(6), None, None, "sum"
f(2, 3, 8, 8), f(4, 3, 3, 3)
f(2, 3, 8, 8), f(4, 3, 3, 3), f(4)
f(2, 3, 8, 8), f(3, 4, 3, 3)
f(2, 3, 8), f(4, 3, 3), f(4)
f(1, 2, 5, 5, 5), f(2, 2, 3, 3, 3)
f(2, 3, 8, 8), f(4, 3, 3, 3), f(4), [1, 1], [1, 1], [1, 1], False, [0, 0], 1
f(2, 4, 6, 6), f(2, 3, 8, 8), f(4, 3, 3, 3), [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True]
f(2, 3, 8, 8), 2
f(2, 3, 8, 8), [2, 2]
f(2, 3, 8, 8), [4, 4]
f(2, 3, 8), 2
f(2, 3, 8), [2]
f(1, 2, 8, 8, 8), [2, 2, 2]
f(2, 3, 4, 4), f(2, 3, 8, 8), [2, 2], [2, 2], [0, 0], False, True, None
f(2, 3, 4, 4), f(2, 3, 8, 8), [2, 2], [2, 2], [0, 0], [1, 1], False, i(2, 3, 4, 4)
f(2, 3, 4, 4), f(2, 3, 8, 8)
f(2, 3, 8, 8), [1, 1, 1, 1]
f(2, 3, 8, 8), (1, 1, 1, 1), "reflect"
f(2, 3, 8, 8), (1, 1, 1, 1), "replicate"
f(1, 2, 8, 8, 8), [1, 1, 1, 1, 1, 1]
f(2, 3, 8), [1, 1]
f(2, 18, 9), [5, 5], [3, 3], [1, 1], [0, 0], [1, 1]
f(2, 3, 8, 8), f(3), f(3)
f(2, 3, 8, 8), f(3), f(3), f(3), f(3), True, 0.1, 1e-5
f(2, 3, 8, 8), f(3), f(3), f(3), f(3), 0.1, 1e-5
f(2, 3, 8, 8), f(3), f(3), True, 0.1, 1e-5
f(2, 4, 8, 8), 2
f(2, 4, 8, 8), f(4), f(4), 2, 4, 64, 2, 1e-5
f(2, 4, 8, 8), f(2, 4, 8, 8), f(2, 2), f(2, 2), f(4), 2, 4, 64, 2, [True, True, True]
f(2, 3, 8, 8), f(3)
f(2, 2, 6, 8), f(2, 2, 6, 8), f(2, 2, 6, 8)
f(2, 2, 6, 8), f(2, 2, 6, 8), f(2, 2, 6, 8), f(6, 6)
f(2, 2, 6, 8), f(2, 2, 6, 8), f(2, 2, 6, 8), None, 0.1
f(2, 2, 6, 8), f(2, 2, 6, 8), f(2, 2, 6, 8), None, 0.0, True
"ij,jk->ik", f(6, 8), f(8, 6)
"ij->i", [f(6, 8)]
"ij,jk->ik", [f(6, 8), f(8, 6)]
f(2, 3, 8, 8), f(2, 5, 5, 2), 0, 0, False
f(2, 3, 8, 8), [16, 16], False, None
f(2, 3, 8, 8), [16, 16], None
f(2, 3, 8, 8), None, 2.0
f(2, 3, 8, 8), None, 2.0, "bilinear"
f(6, 8), f(5, 8), 2.0, None
f(6, 8), 2.0
f(6, 8), [1], 0, True
f(6, 8), [0, 1], 1, True
c(6, 6), [1], 0, 10
f(6, 8), [6, 8], 0, 1
f(8), [6, 8], 0, 1
f(6, 5), [6, 8], 1, 0, 5, 1
f(6, 8), f(6, 5), 1, 0, 5, 1
f(6, 8), f(8), 0, 1
f(6, 8), f(6, 8), 1, torch.float32
f(6, 8), b(6, 8), 1.25
f(6, 8), 1, True, True
f(6, 8), f(8), f(8), 0.25, 0, 1e-5
f(6, 8), f(8), f(8), f(8), f(8), 1e-5, 0.5, 0
f(6, 8), "cpu"
f(6, 8), "T"
f(6, 8), "fro"
f(6, 8), i(6), None, 1, -100
2, i(6, 8)
f(6, 8), [0, 1], [1, 0]
f(6, 8), f(8, 6), [1], [0]
f(2, 3, 8, 8), f(3), f(3), f(3), f(3), True, 0.1, 1e-5, False
"""


def _numbers(*sizes: int) -> torch.Tensor:
    return torch.rand(sizes) / 2 + 0.25


def _mask(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes, dtype=torch.bool)


def _indices(*sizes: int) -> torch.Tensor:
    return torch.zeros(sizes, dtype=torch.int64)


def _complex(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes, dtype=torch.complex64)


_MADE_BY = {"f": _numbers, "b": _mask, "i": _indices, "c": _complex, "torch": torch}
OPERANDS = [eval(f"lambda: ({line})", _MADE_BY) for line in LINES.strip().splitlines()]  # of this file


def fitting(function: Callable[..., object]) -> Callable[[], tuple[Any, ...]] | None:
    """Return what makes the first operands with which a function runs.

    They are tried without data first: of some functions, operands of wrong sizes end the process.
    """
    for make in OPERANDS:
        try:
            with torch.device("meta"):
                function(*make())
            function(*make())
        except Exception:  # whatever is wrong with them, other operands may fit
            continue
        return make
    return None
