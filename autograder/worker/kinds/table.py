"""How a student's function is called: by the mode that goes with the kind of its exercise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker.kinds import analysis, archive, captured, counterexample, graph, module, schedule
from autograder.worker.kinds import callable as callable_kind

Answer = Callable[[Message], tuple[dict[str, Any], list[RawTensor]]]

ANSWERS: Mapping[str, Callable[[Callable[..., Any]], Answer]] = {
    "analysis": analysis.analysis_answer,
    "archive": archive.archive_answer,
    "callable": callable_kind.callable_answer,
    "captured": captured.captured_answer,
    "counterexample": counterexample.counterexample_answer,
    "module": module.module_answer,
    "graph": graph.graph_answer,
    "schedule": schedule.schedule_answer,
    "value": callable_kind.value_answer,
}
