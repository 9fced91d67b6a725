"""What belongs to each kind of exercise: how the worker loads the answer, and what checks are given to call it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from autograder.host.exercise import Kind
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.kinds.archive import ArchiveAnswer
from autograder.host.kinds.callable import CallableAnswer
from autograder.host.kinds.captured import CapturedAnswer
from autograder.host.kinds.counterexample import CounterexampleAnswer
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.kinds.module import ModuleAnswer
from autograder.host.kinds.schedule import ScheduleAnswer
from autograder.host.kinds.value import ValueAnswer
from autograder.host.session import Session


@dataclass(frozen=True)
class Form:
    """One kind of answer, for the worker and for the checks."""

    mode: str  # of the worker; see `autograder.worker.main`
    answer: Callable[[Session, Session], Any]  # of the student's worker and of a clean one


FORMS: Mapping[Kind, Form] = {
    Kind.ANALYSIS: Form("analysis", lambda student, clean: AnalysisAnswer(student)),
    Kind.ARCHIVE: Form("archive", ArchiveAnswer),
    Kind.CALLABLE: Form("callable", lambda student, clean: CallableAnswer(student)),
    Kind.CAPTURED: Form("captured", CapturedAnswer),
    Kind.COUNTEREXAMPLE: Form("counterexample", CounterexampleAnswer),
    Kind.GRAPH: Form("graph", GraphAnswer),
    Kind.MODULE: Form("module", ModuleAnswer),
    Kind.SCHEDULE: Form("schedule", ScheduleAnswer),
    Kind.VALUE: Form("value", ValueAnswer),
}
