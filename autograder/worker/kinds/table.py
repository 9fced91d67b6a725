"""The handlers of a student's function by kind of exercise, and the function that serves each class of load request."""

from collections.abc import Callable, Mapping
from typing import Any

from autograder.protocol import Handlers, Tensors
from autograder.protocol.requests.kernel_runs import LoadKernels, LoadTimedKernels
from autograder.protocol.requests.loads import (
    Load,
    LoadAnswer,
    LoadArchive,
    LoadEvents,
    LoadGraph,
    LoadLowering,
    LoadOperators,
    LoadTrial,
)
from autograder.worker import source
from autograder.worker.clean_worker import load_events, load_graph, load_lowering
from autograder.worker.kinds.analysis import analysis_answer
from autograder.worker.kinds.archive import archive_answer, load_archive
from autograder.worker.kinds.callable import callable_answer
from autograder.worker.kinds.captured import captured_answer
from autograder.worker.kinds.compiled_kernels import load_timed_kernels
from autograder.worker.kinds.counterexample import counterexample_answer, load_trial
from autograder.worker.kinds.graph import graph_answer
from autograder.worker.kinds.module import module_answer
from autograder.worker.kinds.schedule import schedule_answer
from autograder.worker.kinds.triton import load_kernels, triton_answer
from autograder.worker.kinds.value import value_answer
from autograder.worker.registered_operators import load_operators

KINDS: Mapping[str, Callable[[Callable[..., Any]], Handlers]] = {
    "analysis": analysis_answer,
    "archive": archive_answer,
    "callable": callable_answer,
    "captured": captured_answer,
    "counterexample": counterexample_answer,
    "graph": graph_answer,
    "triton": triton_answer,
    "module": module_answer,
    "schedule": schedule_answer,
    "value": value_answer,
}


def load_answer(request: LoadAnswer, _: Tensors) -> Handlers:
    """Run the parts of an answer as one module, and return the handlers for its function `entry_point`."""
    parts = {part.name: part.text for part in request.parts}
    return KINDS[request.kind](source.load(parts, request.entry_point))


LOADS: Mapping[type[Load], Callable[[Any, Tensors], Handlers]] = {
    LoadAnswer: load_answer,
    LoadArchive: load_archive,
    LoadEvents: load_events,
    LoadGraph: load_graph,
    LoadKernels: load_kernels,
    LoadLowering: load_lowering,
    LoadOperators: load_operators,
    LoadTimedKernels: load_timed_kernels,
    LoadTrial: load_trial,
}
"""All except the first load data that the host made or checked, in a worker that never saw student code."""
