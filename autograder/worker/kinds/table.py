"""The handlers of a student's function by kind of exercise, and the function that serves each class of load request."""

import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from types import ModuleType
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
    LoadTrial,
)
from autograder.worker import source
from autograder.worker.clean_worker import load_events, load_graph, load_lowering
from autograder.worker.confinement.seal import seal
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
from autograder.worker.rewrites_of_torch import begin_answer, note_rewrites, refused_files
from autograder.worker.withdrawn_parts import is_withdrawn, withdraw

WORKER = "autograder.worker"
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
    begin_answer()
    parts = {part.name: part.text for part in request.parts}
    with note_rewrites() if request.kind == "captured" else nullcontext():
        if not request.refused:
            return KINDS[request.kind](source.load(parts, request.entry_point))
    withdraw(request.refused)
    if request.kind == "value":
        seal()
    _hide_the_worker()
    files = [place for place in request.refused if not is_withdrawn(place)]
    with refused_files(files):
        entry = source.load(parts, request.entry_point)
    handlers = KINDS[request.kind](entry)
    return {asked: _without(files, serve) for asked, serve in handlers.items()}


def _hide_the_worker() -> None:
    """Leave no module of the worker to be imported by its name, and changed; an import makes another, unused one.

    Whoever takes the worker apart by its frames still finds them: nothing inside a process can be kept from it.
    """
    for name in [name for name in sys.modules if name.startswith(WORKER)]:
        parent, _, own = name.rpartition(".")
        if own in vars(sys.modules.get(parent, sys)):
            delattr(sys.modules[parent], own)
        del sys.modules[name]
    sys.modules["__main__"] = ModuleType("__main__")


def _without(files: Collection[str], serve: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler that refuses what functions of these files did."""

    def refusing(request: Any, tensors: Tensors) -> Any:
        with refused_files(files):
            return serve(request, tensors)

    return refusing


LOADS: Mapping[type[Load], Callable[[Any, Tensors], Handlers]] = {
    LoadAnswer: load_answer,
    LoadArchive: load_archive,
    LoadEvents: load_events,
    LoadGraph: load_graph,
    LoadKernels: load_kernels,
    LoadLowering: load_lowering,
    LoadTimedKernels: load_timed_kernels,
    LoadTrial: load_trial,
}
"""All except the first load data that the host made or checked, in a worker that never saw student code."""
