"""Export without guards: `torch.export` writes them to find sizes that cannot stay open, and runs none of them.

Where all sizes are fixed there is nothing to find, and writing them takes a sixth of a small capture. Read in torch
2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def without_guards() -> Iterator[None]:
    """Have export ask of no size whether it stays open."""
    from torch._dynamo import functional_export

    asks = functional_export._suggest_or_raise_constraint_violation
    functional_export._suggest_or_raise_constraint_violation = _asks_nothing
    try:
        yield
    finally:
        functional_export._suggest_or_raise_constraint_violation = asks


def _asks_nothing(*_: Any) -> None:
    pass
