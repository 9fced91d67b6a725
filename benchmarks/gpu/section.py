"""Define what a section is, and the run that it is given."""

import importlib
import json
import pkgutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Notes = Mapping[str, Any]


def no_sentences(notes: Notes) -> list[str]:
    """Return no sentences."""
    return []


@dataclass
class Run:
    """Hold the device and the end of a section's run, and store its notes."""

    device: str  # "cuda", or "cpu" in a dry run
    path: Path  # of its notes
    end_s: float  # on the clock of `time.monotonic`
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def dry(self) -> bool:
        """Tell whether this is a dry run, which measures nothing."""
        return self.device == "cpu"

    @property
    def left_s(self) -> float:
        """Return the seconds that the section has left."""
        return self.end_s - time.monotonic()

    def note(self, key: str, value: Any) -> None:
        """Store plain data on disk at once, so that a crash does not lose it."""
        self.notes[key] = value
        beside = self.path.with_suffix(".part")
        beside.write_text(json.dumps(self.notes), encoding="utf-8")
        beside.replace(self.path)


@dataclass(frozen=True)
class Section:
    """Describe one part of the check."""

    title: str
    order: int  # the lowest runs first
    budget_s: float  # of its process, start included; then it is stopped
    run: Callable[[Run], None]
    as_markdown: Callable[[Notes], str]  # of the notes, which may be few if the section was stopped
    failures: Callable[[Notes], list[str]] = no_sentences  # sentences; each fails the whole check
    missed: Callable[[Notes], list[str]] = no_sentences  # targets of speed that were missed; they fail nothing


def sections() -> dict[str, Section]:
    """Return all sections by name, in the order in which they run."""
    import benchmarks.gpu.sections as package

    found = {each.name: section(each.name) for each in pkgutil.iter_modules(package.__path__)}
    return dict(sorted(found.items(), key=lambda item: item[1].order))


def section(name: str) -> Section:
    """Return one section, and load no other."""
    try:
        found: Section = importlib.import_module(f"benchmarks.gpu.sections.{name}").SECTION
    except Exception as error:  # a section that cannot be imported must not stop the others
        return _broken(name, error)
    return found


def _broken(name: str, error: Exception) -> Section:
    said = f"cannot be imported ({type(error).__name__}: {error})"

    def run(around: Run) -> None:
        raise error

    return Section(name, 1000, 60.0, run, lambda notes: said, lambda notes: [said])
