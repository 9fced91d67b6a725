"""Count the elements of all blocks that a program of a Triton kernel keeps at once, in Triton's interpreter.

A block lives as long as a name or an expression of the kernel needs it. On a GPU, what lives needs registers.
"""

from types import TracebackType
from typing import Any

from course_lib.kernel_programs.interpreter import interpreter_of_triton


class LiveBlocks:
    """Count what lives in the kernels that run inside of the `with` block.

    >>> with LiveBlocks() as live:  # doctest: +SKIP
    ...     copy_kernel[(2,)](x, out, 10, BLOCK=8)
    >>> live.most  # numbers, pointers, mask and values of one block  # doctest: +SKIP
    57

    Pointers and masks count as numbers do, and a number counts as a block of one element.
    """

    def __init__(self) -> None:
        self.most = 0
        self._now = 0
        self._handle: Any = None
        self._check: Any = None

    def __enter__(self) -> "LiveBlocks":
        self._handle = interpreter_of_triton().TensorHandle
        self._check = check = self._handle.__post_init__

        def made(block: Any) -> None:
            check(block)
            block.lanes = block.data.size
            self._now += block.lanes
            self.most = max(self.most, self._now)

        def freed(block: Any) -> None:
            self._now -= getattr(block, "lanes", 0)  # one that was made before the count has none

        self._handle.__post_init__, self._handle.__del__ = made, freed
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.__post_init__ = self._check
        del self._handle.__del__
