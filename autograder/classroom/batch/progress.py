"""Show the progress of a long run: in a terminal a bar with the remaining time, elsewhere a line every few seconds."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

QUIET_S = 2.0  # between two lines of one stage, without a terminal
_COLUMNS = (
    TextColumn("{task.description:<34}"),
    BarColumn(bar_width=24),
    MofNCompleteColumn(),
    TimeElapsedColumn(),
    TextColumn("left"),
    TimeRemainingColumn(),
    TextColumn("{task.fields[last]}"),
)


Advance = Callable[[str], None]  # called with the name of a finished step


@contextmanager
def stage(name: str, total: int, console: Console | None = None) -> Iterator[Advance]:
    """Show one stage of `total` steps: `with stage("Grade", 12) as advance: advance("student_1, 7 of 10")`.

    The text is shown as it is, never as markup.
    """
    console = console or Console()
    if console.is_terminal:
        with _bar(name, total, console) as advance:
            yield advance
        return
    started = last = time.monotonic()
    done = 0

    def line(what: str) -> None:
        nonlocal done, last
        done += 1
        if done in (1, total) or time.monotonic() - last >= QUIET_S:
            last = time.monotonic()
            print(f"{name} {done}/{total}: {what}{_left(done, total, last - started)}", flush=True, file=console.file)

    yield line


def _left(done: int, total: int, took_s: float) -> str:
    """Return the time for the remaining steps at the present speed; empty for less than a second."""
    left_s = took_s / done * (total - done)
    return (
        f" (about {left_s / 60:.0f} min left)"
        if left_s >= 90
        else f" (about {left_s:.0f} s left)"
        if left_s >= 1
        else ""
    )


@contextmanager
def _bar(name: str, total: int, console: Console) -> Iterator[Advance]:
    with Progress(*_COLUMNS, console=console) as progress:
        task = progress.add_task(name, total=total, last="")

        def advance(what: str) -> None:
            progress.update(task, advance=1, last=what.replace("[", "("))

        yield advance
        progress.update(task, last="")
