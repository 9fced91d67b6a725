"""Where in the user's own source something happened."""

import linecache
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import torch

_TORCH = str(Path(torch.__file__).parent)
_OURS = str(Path(__file__).parent)


@dataclass(frozen=True)
class SourceLine:
    """One line of the program that was captured."""

    file: str
    line: int  # counted from 1
    function: str
    text: str  # stripped; empty if the source is not at hand

    @classmethod
    def at(cls, file: str, line: int, function: str) -> "SourceLine":
        """Look up the text of a line."""
        return cls(file, line, function, linecache.getline(file, line).strip())

    def __str__(self) -> str:
        place = f"line {self.line} of the cell" if "ipykernel" in self.file else f"{Path(self.file).name}:{self.line}"
        return f"{place}, in {self.function}" + (f": `{self.text}`" if self.text else "")

    def as_stack_trace(self) -> str:
        """Return the line in the form that torch.fx keeps in `node.stack_trace`."""
        return f'File "{self.file}", line {self.line}, in {self.function}\n    {self.text}'


def line_of_caller(frame: FrameType | None) -> SourceLine | None:
    """Return the innermost line of the user's, going outwards from `frame`; None if we come first."""
    while frame is not None and frame.f_code.co_filename.startswith(_TORCH):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.startswith(_OURS):
        return None
    return SourceLine.at(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def line_of_error(error: BaseException) -> SourceLine | None:
    """Return the innermost line of the user's at which `error` was raised, or None if there is none."""
    frames: Iterable[tuple[FrameType, int]] = traceback.walk_tb(error.__traceback__)
    places = [(frame.f_code, line) for frame, line in frames]
    users = [(code, line) for code, line in places if not code.co_filename.startswith((_TORCH, _OURS))]
    return SourceLine.at(users[-1][0].co_filename, users[-1][1], users[-1][0].co_name) if users else None
