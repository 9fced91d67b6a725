"""How far a run is, on a terminal or in a notebook; silent where nobody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Advance = Callable[[int, str], None]


@contextmanager
def progress_bar(title: str, total: int, *, console: Console | None = None) -> Iterator[Advance]:
    """Give a function that takes how many of `total` are done, and what to say beside the bar.

    Nothing is written where the console is neither a terminal nor a notebook: a log file would be full of bars.
    """
    # Not above, because importing rich draws a random number, and importing the library must not.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = console or Console(stderr=True)
    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, disable=not (console.is_terminal or console.is_jupyter)) as bar:
        task = bar.add_task(title, total=total, note="")
        yield lambda done, note: bar.update(task, completed=done, note=note)
        bar.refresh()  # in a notebook rich leaves the last steps out
