"""Five programs that Inductor cannot fuse, each for another reason, and the loops that it makes of them.

The formulas are the students' programs without their prints and writes. A test compares the listings with Inductor's
own.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from autograder.exercises.programs.loop_listings import BREAK, EXTERN, MUTATION, SIZES, VIEW, Listing, Loop

TINY = 1e-5


def reported(x: Tensor) -> Tensor:
    """Rectify, print the shape, and scale by the root of the width."""
    return x.relu() / x.shape[-1] ** 0.5


def appended(cache: Tensor, k: Tensor) -> Tensor:
    """Write k into the last column of the cache; return the hyperbolic tangent of all of it."""
    return torch.cat([cache[:, :-1], k[:, None]], 1).tanh()


def turned(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the exponential, and its transpose plus one."""
    y = x.exp()
    return y, y.T.contiguous() + 1


def spread(x: Tensor) -> Tensor:
    """Return the largest rectified element of each row minus the smallest."""
    ranked = x.relu().sort(-1).values
    return ranked[:, -1] - ranked[:, 0]


def standardised(x: Tensor) -> Tensor:
    """Subtract the mean of all elements, and divide by the standard deviation of all."""
    centred = x - x.mean()
    return centred / (centred.pow(2).mean() + TINY).sqrt()


def _loop(
    kernel: int, name: str, over: Sequence[int], reads: Sequence[tuple[str, str]], writes: str, **more: Any
) -> Loop:
    graph = int(name[1]) if name.startswith("g") else 0
    return {
        "kernel": kernel,
        "graph": graph,
        "name": name,
        "library": False,
        "over": list(over),
        "reducing": [],
        "reads": [list(read) for read in reads],
        "writes": writes,
        "into": "",
        **more,
    }


def known_listings(rows: int, columns: int) -> dict[str, Listing]:
    """Return the scheduler's loops for the five original programs, for x of `rows` x `columns`."""
    points, x = rows * columns, ("arg0_1", "c0")
    first = _loop(0, "op0", [points], [x], "buf0")
    listings = {
        "reported": ([first, _loop(1, "g1.op0", [points], [("buf0", "c0")], "g1.buf0")], [("op0", "g1.op0", BREAK)]),
        "appended": (
            [
                _loop(0, "op0", [rows], [("arg1_1", "c0"), ("arg0_1", "all")], "buf0", into="arg0_1"),
                _loop(1, "op1", [points], [("buf0", "c0")], "buf1"),
            ],
            [("op0", "op1", MUTATION)],
        ),
        "turned": (
            [first, _loop(1, "op1", [columns, rows], [("buf0", f"c0 + {columns}*c1")], "buf1")],
            [("op0", "op1", VIEW)],
        ),
        "spread": (
            [
                first,
                _loop(1, "op1", [], [("buf0", "all")], "buf1", library=True),
                _loop(2, "op4", [rows], [("buf1", f"{columns}*c0 + {columns - 1}"), ("buf1", f"{columns}*c0")], "buf4"),
            ],
            [("op0", "op1", EXTERN), ("op1", "op4", EXTERN)],
        ),
        "standardised": (
            [
                _loop(0, "op0", [], [x], "buf0", reducing=[points]),
                _loop(1, "op1", [], [x, ("buf0", "0")], "buf1", reducing=[points]),
                _loop(2, "op2", [points], [x, ("buf0", "0"), ("buf1", "0")], "buf2"),
            ],
            [("op0", "op1", SIZES), ("op0", "op2", SIZES), ("op1", "op2", SIZES)],
        ),
    }
    return {name: Listing(f"`{name}`", loops, frozenset(edges)) for name, (loops, edges) in listings.items()}
