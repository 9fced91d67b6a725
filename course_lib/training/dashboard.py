"""TensorBoard in a notebook: its server in a thread of this process, its page in the output of a cell."""

from __future__ import annotations

import html
import logging
import os
from dataclasses import dataclass
from pathlib import Path

from course_lib.errors import TrainingError


@dataclass(frozen=True)
class Dashboard:
    """A page of TensorBoard; as the last line of a cell it is shown."""

    url: str
    folder: Path
    height_pixels: int = 800

    def _repr_html_(self) -> str:
        title = html.escape(f"TensorBoard: scalars, graph and histograms of {self.folder.name}", quote=True)
        source = html.escape(self.url, quote=True)
        # without the style its border and the line it stands on make the output scroll in both directions
        style = "display: block; border: 0"
        size = f'width="100%" height="{self.height_pixels}"'
        return f'<iframe title="{title}" src="{source}" {size} style="{style}"></iframe>'


def dashboard(folder: Path, *, height_pixels: int = 800) -> Dashboard:
    """Start TensorBoard on a folder of event files and return its page.

        >>> dashboard(folder)  # doctest: +SKIP

    The server lives as long as this Python process, reachable from this machine alone; new events turn up when the page
    is reloaded. Where JupyterLab hands a port on, as in the course's image, ``TENSORBOARD_PROXY_URL`` says how, with
    ``%PORT%`` in the port's place. Raises `TrainingError` if TensorBoard is not installed.
    """
    try:
        from tensorboard import program
    except ImportError as error:
        raise TrainingError(
            f"dashboard got {folder} to show, but TensorBoard is not installed; install tensorboard."
        ) from error
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line for each request would fill the notebook
    logging.getLogger("tensorboard").setLevel(logging.ERROR)  # as of the second graph, when a cell is run once more
    server = program.TensorBoard()
    server.configure(argv=["tensorboard", "--logdir", str(folder), "--port", "0", "--load_fast", "false"])
    url = server.launch()
    port = url.rstrip("/").rpartition(":")[2]
    return Dashboard(os.environ.get("TENSORBOARD_PROXY_URL", url).replace("%PORT%", port), folder, height_pixels)
