"""How a student's function is called: by the mode that goes with the kind of its exercise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker import analyses, archives, captures, counterexamples, functions, modules, passes, schedules

Answer = Callable[[Message], tuple[dict[str, Any], list[RawTensor]]]

ANSWERS: Mapping[str, Callable[[Callable[..., Any]], Answer]] = {
    "analysis": analyses.analysis_answer,
    "archive": archives.archive_answer,
    "callable": functions.tensor_answer,
    "captured": captures.capture_answer,
    "counterexample": counterexamples.counterexample_answer,
    "module": modules.module_answer,
    "pass": passes.pass_answer,
    "schedule": schedules.schedule_answer,
    "value": functions.value_answer,
}
