"""Find the line of the user's source that a node, a call or an error comes from."""

import linecache
import re
import sysconfig
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import torch
from torch import fx

_TORCH = str(Path(torch.__file__).parent)
_OURS = str(Path(__file__).parent)
_PYTHON = sysconfig.get_path("stdlib")


@dataclass(frozen=True)
class SourceLine:
    """Describe one line of the program that was captured."""

    file: str
    line: int  # counted from 1
    function: str
    text: str  # stripped; empty if the source is not available

    @classmethod
    def at(cls, file: str, line: int, function: str) -> "SourceLine":
        """Look up the text of a line."""
        return cls(file, line, function, linecache.getline(file, line).strip())

    def __str__(self) -> str:
        place = f"line {self.line} of the cell" if "ipykernel" in self.file else f"{Path(self.file).name}:{self.line}"
        return place + (f", in {self.function}" if self.function else "") + (f": `{self.text}`" if self.text else "")

    def as_stack_trace(self) -> str:
        """Return the line in the form that torch.fx keeps in `node.stack_trace`."""
        return f'File "{self.file}", line {self.line}, in {self.function}\n    {self.text}'


def lines_of_nodes(graphs: Iterable[fx.GraphModule]) -> Mapping[str, SourceLine]:
    """Return the line of each node that has a stack trace; for a name in several graphs, the line of the first one."""
    lines: dict[str, SourceLine] = {}
    for graph_module in graphs:
        for node in graph_module.graph.nodes:
            line = line_in_text(node.stack_trace or "")
            if line is not None:
                lines.setdefault(node.name, line)
    return lines


def line_in_text(text: str) -> SourceLine | None:
    """Return the innermost line of the user in a stack trace, or None; the innermost frame is the last one."""
    frames = re.findall(r'File "([^"]+)", line (\d+)(?:, in (\S+))?', text)
    users = [frame for frame in frames if _is_users(frame[0])]
    return SourceLine.at(users[-1][0], int(users[-1][1]), users[-1][2]) if users else None


def line_of_caller(frame: FrameType | None, tracer: str) -> SourceLine | None:
    """Return the innermost line of the user, going outwards from `frame`; None if our own line comes first.

    `tracer` is the file of the tracer, whose methods torch.fx calls between the lines of the user.
    """
    while frame is not None and frame.f_code.co_filename.startswith((_TORCH, tracer)):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.startswith(_OURS):
        return None
    return SourceLine.at(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def line_of_error(error: BaseException) -> SourceLine | None:
    """Return the innermost line of the user in the traceback of `error`, or None."""
    frames: Iterable[tuple[FrameType, int]] = traceback.walk_tb(error.__traceback__)
    places = [(frame.f_code, line) for frame, line in frames]
    users = [(code, line) for code, line in places if _is_users(code.co_filename)]
    return SourceLine.at(users[-1][0].co_filename, users[-1][1], users[-1][0].co_name) if users else None


def _is_users(file: str) -> bool:
    """Tell whether a file is neither of torch, nor of this package, nor Python's own, nor generated."""
    in_python = file.startswith(_PYTHON) and "site-packages" not in file
    return not in_python and not file.startswith((_TORCH, _OURS, "<string>", "<eval_with_key>"))
