"""Build passes of ours over TorchScript's graphs, written in C++, and switch them on from Python."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from course_lib.capture.cpp.building import build

SOURCE = Path(__file__).parent / "passes.cpp"


@dataclass(frozen=True)
class Passes:
    """The passes of `passes.cpp`, loaded into this process."""

    operators: Any  # what the library registers: the switch and the counts among them

    @contextmanager
    def enabled(self, name: Literal["rewrite", "compile"]) -> Iterator[None]:
        """Let one pass run on every graph that the executor optimises, until the block is left."""
        self.operators.enable(name, True)
        try:
            yield
        finally:
            self.operators.enable(name, False)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many plans the groups of "compile" have made, and how many calls went to PyTorch's operators instead."""
        compilations, fallbacks = self.operators.counts()
        return {"compilations": compilations, "fallbacks": fallbacks}


def build_passes(folder: Path | str) -> Passes:
    """Compile `passes.cpp` into a folder and load it.

    That keeps a compiler busy for a while, unless the folder holds one that is newer than its source. A process loads
    one and keeps it. Raises `CaptureError` if there is no g++, or it fails.
    """
    library = Path(folder) / f"passes-torch{torch.__version__}.so"
    build(SOURCE, library, ["-O1", "-fPIC", "-shared"])
    operators = torch.ops.course_script
    if not hasattr(operators, "counts"):  # names can be registered once
        torch.ops.load_library(library)
    return Passes(operators)
