"""Collect the logs of PyTorch's compiler in a panel, instead of printing them to the terminal.

The names are those of the environment variable TORCH_LOGS.
"""

import html
import importlib
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import torch

from course_lib.errors import CaptureError

PLACE = re.compile(
    r'(?<![\w:/.])(?:/(?=\w)|[A-Za-z]:\\)[^\s",]*[/\\]'
)  # folders of this machine, which are of no use to the reader


@dataclass(repr=False)
class LogPanel:
    """Hold the messages in order; prints as text and shows as a box in a notebook."""

    names: tuple[str, ...]
    messages: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        said = "\n".join(self.messages) or "(nothing was logged)"
        return f"TORCH_LOGS={','.join(self.names)}\n{said}"

    __repr__ = __str__  # notebooks, terminals and logs all show the readable form

    def _repr_html_(self) -> str:
        title, _, text = str(self).partition("\n")
        return (
            '<details open style="border: 1px solid rgba(128, 128, 128, 0.5); padding: 0.5em">'
            f"<summary>{html.escape(title)}</summary>"
            f'<pre style="white-space: pre-wrap">{html.escape(text)}</pre></details>'
        )


class _Keeper(logging.Handler):
    def __init__(self, panel: LogPanel) -> None:
        super().__init__(logging.DEBUG)
        self._panel = panel

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):  # an error in formatting a message must not stop a compilation
            self._panel.messages.append(PLACE.sub("", record.getMessage()))


@contextmanager
def logged(*names: str) -> Iterator[LogPanel]:
    """Collect what the compiler logs under the given names of TORCH_LOGS within the block.

        >>> with logged("graph_breaks") as panel:
        ...     _ = torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        >>> panel.messages
        []

    Possible names include "graph_breaks", "recompiles", "guards", "graph_code" and "bytecode". Nothing is printed to
    the terminal, and all loggers are restored at the end. Raises `CaptureError` for a name that PyTorch does not know.
    """
    panel = LogPanel(names)
    loggers = [logger for name in names for logger in _loggers(name)]
    enabled = torch._logging._internal.log_state.artifact_names  # the compiler reads them too
    added = set(names) - enabled
    enabled |= added
    before = [(logger, logger.level, logger.handlers, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [_Keeper(panel)], False
        logger.setLevel(logging.DEBUG)
    try:
        yield panel
    finally:
        enabled -= added
        for logger, level, handlers, propagate in before:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)


def _loggers(name: str) -> list[logging.Logger]:
    """Return the loggers of one name; they are private to PyTorch, and a test fails if they move."""
    importlib.import_module("torch._dynamo.convert_frame")  # creates the loggers

    found = [
        logger
        for path, logger in logging.root.manager.loggerDict.items()
        if path.startswith("torch.") and path.endswith(f".__{name}") and isinstance(logger, logging.Logger)
    ]
    if not found:
        raise CaptureError(f"PyTorch logs nothing under the name {name!r}; try 'recompiles' or 'graph_breaks'.")
    return found
