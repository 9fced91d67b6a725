"""An operator that an exercise allows is one that a graph may call; otherwise the graph is refused all the same."""

import importlib
from collections.abc import Iterator

import pytest
import torch

from autograder.exercises import all_exercises
from autograder.exercises.lessons import module_name
from course_lib.graph.data.targets import ATEN

PREFIX = "torch.ops.aten."
LISTED = {name.split(".")[0] for name in ATEN}


def _lists() -> Iterator[tuple[str, frozenset[str]]]:
    for exercise in all_exercises():
        for name, value in vars(importlib.import_module(module_name(exercise))).items():
            if isinstance(value, frozenset) and any(str(each).startswith(PREFIX) for each in value):
                yield f"{exercise}-{name}", value


LISTS = dict(_lists())


@pytest.mark.parametrize("name", LISTS)
def test_a_graph_may_call_what_an_exercise_allows(name: str) -> None:
    packets = {each.removeprefix(PREFIX) for each in LISTS[name] if each.startswith(PREFIX)}
    # Only some operators have a form in place, and some of these change a shape, which no graph may.
    missing = {each for each in packets - LISTED if not each.endswith("_") or _writes(each)}
    assert not missing


def _writes(packet: str) -> bool:
    found = getattr(torch.ops.aten, packet, None)
    return found is not None and any(torch.Tag.inplace_view not in getattr(found, o).tags for o in found.overloads())
