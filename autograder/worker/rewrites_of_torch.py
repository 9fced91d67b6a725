"""Refuse what PyTorch has ready where it is the task: rewrites of what is captured by dispatch, and attention by hand.

A task of the first kind is to decompose, to functionalise or to derive by hand. PyTorch does all three, and its result
looks like an answer. So the functions that run are observed, and the capture is refused if one of these is among them.
Of functions on tensors, the operators that run are observed, however they are called.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch._C._autograd import _disable_profiler_legacy, _enable_profiler_legacy
from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig

from autograder.worker.source import AnswerError

HOME = f"{Path(torch.__file__).parent}/"
# Files of PyTorch, and how the names of those functions begin that rewrite programs; "" stands for all public names.
REWRITES = {
    "_decomp/decompositions.py": ("",),
    "_functorch/aot_autograd.py": ("aot_", "create_aot_"),
    "_functorch/eager_transforms.py": ("functionalize",),
    "_refs/": ("",),
}
COLLATOR = "transformers.data.data_collator"  # hides tokens for a masked language model
ATTENTION = "scaled_dot_product"  # in the name of each operator of PyTorch that computes attention


class RewrittenByTorchError(AnswerError):
    """PyTorch did what the answer should do."""


_at_load: list[str] = []


def note_rewrites() -> contextlib.AbstractContextManager[None]:
    """Return a context in which the answer is loaded; a rewrite that runs in it is refused by every later capture."""
    _at_load.clear()
    return _observed(_at_load)


@contextlib.contextmanager
def refused_rewrites() -> Iterator[None]:
    """Raise `RewrittenByTorchError` at the end of the block if a rewrite of PyTorch ran in it, or at the load."""
    seen = [*_at_load]
    with _observed(seen):
        yield
    if seen:
        raise RewrittenByTorchError(
            f"The answer ran {seen[0]}, with which PyTorch itself makes such a rewrite. Write the steps yourself, with "
            "the operators that the task names."
        )


@contextlib.contextmanager
def refused_ready_parts() -> Iterator[None]:
    """Raise `RewrittenByTorchError` at the end of the block if an operator ran in it that computes attention.

    Likewise if the part of transformers is loaded that hides tokens, since that is a task of the same kind.
    PyTorch's oldest profiler tells; it starts in a tenth of a millisecond, and writes nothing.
    """
    _enable_profiler_legacy(ProfilerConfig(ProfilerState.CPU, False, False, False, False, False, _ExperimentalConfig()))
    try:
        yield
    finally:
        events = [event.name() for thread in _disable_profiler_legacy() for event in thread]
    ran = next((name for name in events if name.startswith("aten::") and ATTENTION in name), "")
    if ran:
        raise RewrittenByTorchError(
            f"The answer ran {ran}, which is PyTorch's own attention. Compute it by hand: a product, a scale, a mask, "
            "softmax and another product."
        )
    if COLLATOR in sys.modules:
        raise RewrittenByTorchError(f"The answer loaded {COLLATOR}, which hides tokens. Draw and compare by hand.")


@contextlib.contextmanager
def _observed(seen: list[str]) -> Iterator[None]:
    """Put the name of the first rewrite that runs in the block into `seen`."""

    def observe(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and not seen and frame.f_code.co_filename.startswith(HOME) and _is_rewrite(frame):
            seen.append(_told(frame))

    before = sys.getprofile()
    sys.setprofile(observe)
    try:
        yield
    finally:
        sys.setprofile(before)


def _is_rewrite(frame: FrameType) -> bool:
    file, name = frame.f_code.co_filename.removeprefix(HOME), frame.f_code.co_qualname
    if name.startswith(("_", "<")):  # helpers, which shapes and fake tensors use, and imports
        return False
    return any(file.startswith(place) and name.startswith(begins) for place, begins in REWRITES.items())


def _told(frame: FrameType) -> str:
    module = str(frame.f_globals.get("__name__", "torch"))
    return f"{module}.{frame.f_code.co_qualname.partition('.')[0]}"
