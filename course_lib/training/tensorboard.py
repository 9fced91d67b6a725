"""Record a run for TensorBoard and show its page: losses, learning rate, graph, histograms of weights and gradients."""

import html
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from course_lib.errors import TrainingError

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class Recorder:
    """Record nothing, for a run without a folder."""

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Record a number for each name after `step` steps."""

    def graph(self, model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        """Record the model's graph, traced on these inputs."""

    def histograms(self, model: nn.Module, step: int) -> None:
        """Record histograms of the values of each parameter and of its gradient."""


class TensorBoardRecorder(Recorder):
    """Record everything in the format that `tensorboard --logdir FOLDER` shows."""

    def __init__(self, writer: "SummaryWriter") -> None:
        self._writer = writer

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """Write a number for each name after `step` steps."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def graph(self, model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        """Write the model's graph, traced on these inputs in evaluation mode; the mode is restored."""
        training = model.training
        try:
            self._writer.add_graph(model.eval(), inputs)
        finally:
            model.train(training)

    def histograms(self, model: nn.Module, step: int) -> None:
        """Write histograms of the values of each parameter and of its gradient."""
        for name, parameter in model.named_parameters():
            self._writer.add_histogram(f"weights/{name}", parameter.detach(), step)
            if parameter.grad is not None:
                self._writer.add_histogram(f"gradients/{name}", parameter.grad, step)


@contextmanager
def open_recorder(folder: Path | None, *, first_step: int = 0) -> Iterator[Recorder]:
    """Yield a recorder that writes to `folder`, or records nothing if there is no folder.

    Records that an interrupted run wrote after `first_step` steps are hidden, since they are written again. Raises
    `TrainingError` if TensorBoard is not installed.
    """
    if folder is None:
        yield Recorder()
        return
    try:
        from torch.utils.tensorboard import SummaryWriter  # here, since importing it takes a second
    except ImportError as error:
        raise TrainingError(
            f"train got the folder {folder} for TensorBoard, which is not installed; install tensorboard, or train "
            "with tensorboard=False."
        ) from error
    with SummaryWriter(folder, purge_step=first_step + 1 if first_step else None) as writer:
        yield TensorBoardRecorder(writer)


@dataclass(frozen=True)
class Dashboard:
    """Hold the address of a TensorBoard page, which a notebook shows if it is the last line of a cell."""

    url: str
    folder: Path
    height_pixels: int = 800

    def _repr_html_(self) -> str:
        title = html.escape(f"TensorBoard: scalars, graph and histograms of {self.folder.name}", quote=True)
        source = html.escape(self.url, quote=True)
        # without the style, border and line height make the output scroll in both directions
        style = "display: block; border: 0"
        size = f'width="100%" height="{self.height_pixels}"'
        return f'<iframe title="{title}" src="{source}" {size} style="{style}"></iframe>'


def dashboard(folder: Path | str, *, height_pixels: int = 800) -> Dashboard:
    """Start TensorBoard on a folder of event files and return its page.

        >>> dashboard(folder)  # doctest: +SKIP

    The server runs as long as this Python process and accepts connections from this machine only. Reload the page to
    see new events. Where JupyterLab proxies ports, as in the course's image, `TENSORBOARD_PROXY_URL` is the address,
    with `%PORT%` in place of the port. Raises `TrainingError` if there is no such folder, or no TensorBoard.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise TrainingError(
            f"dashboard got {folder}, where there is no folder; name the folder that train got, and train first."
        )
    try:
        from tensorboard import program
    except ImportError as error:
        raise TrainingError(
            f"dashboard got {folder} to show, but TensorBoard is not installed; install tensorboard."
        ) from error
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line for each request would fill the notebook
    logging.getLogger("tensorboard").setLevel(logging.ERROR)  # else a warning appears when a cell is run again
    server = program.TensorBoard()
    server.configure(argv=["tensorboard", "--logdir", str(folder), "--port", "0", "--load_fast", "false"])
    url = server.launch()
    port = url.rstrip("/").rpartition(":")[2]
    return Dashboard(os.environ.get("TENSORBOARD_PROXY_URL", url).replace("%PORT%", port), folder, height_pixels)
