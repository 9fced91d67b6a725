"""Keep Python from collecting cyclic garbage while functions are traced, where that may end the process.

Before 3.11.3, CPython 3.11 leaves stale places on the stack of a frame that is traced or profiled. The collector reads
them, and the process may end with a segmentation fault (CPython, gh-101975). Debian 12 has 3.11.2.
"""

import contextlib
import gc
import sys
from collections.abc import Iterator

MAY_CRASH = (3, 11) <= sys.version_info < (3, 11, 3)


@contextlib.contextmanager
def kept_while_tracing() -> Iterator[None]:
    """Collect no cyclic garbage in the block on a Python that might crash by it; all of it may be collected later."""
    collects = MAY_CRASH and gc.isenabled()
    if collects:
        gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
