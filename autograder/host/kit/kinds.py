"""What belongs to each kind of exercise: how the worker loads the answer, and what checks are given to call it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from autograder.host.kit.answers.analyses import AnalysisAnswer
from autograder.host.kit.answers.archives import ArchiveAnswer
from autograder.host.kit.answers.captures import CapturedAnswer
from autograder.host.kit.answers.counterexamples import CounterexampleAnswer
from autograder.host.kit.answers.graphs import PassAnswer
from autograder.host.kit.answers.modules import ModuleAnswer
from autograder.host.kit.answers.schedules import ScheduleAnswer
from autograder.host.kit.answers.tensors import TensorAnswer
from autograder.host.kit.answers.values import ValueAnswer
from autograder.host.kit.exercise import Kind
from autograder.host.session import Session


@dataclass(frozen=True)
class Form:
    """One kind of answer, for the worker and for the checks."""

    mode: str  # of the worker; see `autograder.worker.main`
    answer: Callable[[Session, Session], Any]  # of the student's worker and of a clean one


FORMS: Mapping[Kind, Form] = {
    Kind.ANALYSIS: Form("analysis", lambda student, clean: AnalysisAnswer(student)),
    Kind.ARCHIVE: Form("archive", ArchiveAnswer),
    Kind.CALLABLE: Form("callable", lambda student, clean: TensorAnswer(student)),
    Kind.CAPTURED: Form("captured", CapturedAnswer),
    Kind.COUNTEREXAMPLE: Form("counterexample", CounterexampleAnswer),
    Kind.GRAPH: Form("pass", PassAnswer),
    Kind.MODULE: Form("module", ModuleAnswer),
    Kind.SCHEDULE: Form("schedule", ScheduleAnswer),
    Kind.VALUE: Form("value", ValueAnswer),
}
