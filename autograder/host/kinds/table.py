"""The class that checks use to call an answer, by kind of exercise; host and worker use the same kind names."""

from collections.abc import Callable, Mapping
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
from autograder.host.kinds.triton import TritonAnswer
from autograder.host.kinds.value import ValueAnswer
from autograder.host.session import Session

KINDS: Mapping[Kind, Callable[[Session, Session], Any]] = {
    Kind.ANALYSIS: AnalysisAnswer,
    Kind.ARCHIVE: ArchiveAnswer,
    Kind.CALLABLE: CallableAnswer,
    Kind.CAPTURED: CapturedAnswer,
    Kind.COUNTEREXAMPLE: CounterexampleAnswer,
    Kind.GRAPH: GraphAnswer,
    Kind.TRITON: TritonAnswer,
    Kind.MODULE: ModuleAnswer,
    Kind.SCHEDULE: ScheduleAnswer,
    Kind.VALUE: ValueAnswer,
}
"""Each takes two sessions: one that holds the student's code, and one that never does."""
