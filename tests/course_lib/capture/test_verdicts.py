"""The verdicts of `compare_modes` and `verify` on sixty programs stay; a run tries some programs, WHOLE=1 all.

`verdict_programs` tells how the table was made: recorded, then compared with one written without sight of it.
"""

import inspect
from typing import Any

import pytest
import torch

from course_lib.capture import compare_modes
from course_lib.capture.modes import MODES
from course_lib.errors import CourseError
from course_lib.fusion import fuse
from course_lib.verify import verify
from tests.course_lib.capture import verdict_programs
from tests.course_lib.capture.verdict_programs import VERDICTS, Part
from tests.drawn import some

LETTERS = {"captured": "c", "refused": "r", "refuses a probe": "p", "silently wrong": "w", "ran as Python": "y"}
OTHER_SIZE = ("branch_on_rows", "divides_by_rows")


def _verify_letter(program: Any, x: torch.Tensor) -> str:
    try:
        graph = fuse(program, (x,), (), check=False).graph_module
    except CourseError:
        return "-"
    return "s" if verify(program, graph, (x,)).passed else "d"


def test_there_are_sixty_programs() -> None:
    assert len(VERDICTS) == 60
    assert all(len(letters) == len(MODES) + 1 for letters in VERDICTS.values())


@pytest.mark.parametrize("run", some(list(VERDICTS), 7, name="programs with verdicts"), ids=lambda run: run.__name__)
def test_verdicts_are_those_that_were_reviewed(run: Any) -> None:
    program: Any = Part(run) if "self" in inspect.signature(run).parameters else run
    x = torch.rand(3, 4, generator=torch.Generator().manual_seed(1)) + 0.1
    probe = torch.arange(20.0).view(5, 4) if run.__name__ in OTHER_SIZE else -x
    compared = compare_modes(program, (x,), [(probe,)], switch_training=run.__name__ == "decides_by_training")
    found = "".join(LETTERS[result.verdict] for result in compared.results)
    assert found == VERDICTS[run][:-1], f"{MODES}\n{compared}"
    assert _outside() == ([], 0, 0, {}, 0, None)
    assert _verify_letter(program, x) == VERDICTS[run][-1]
    assert _outside() == ([], 0, 0, {}, 0, None)


def _outside() -> tuple[object, ...]:
    """Return the state that the programs keep outside of themselves."""
    names = verdict_programs
    return names.LOG, names.NUMBER, names.STATE.calls, names.CACHE, Part.total, names.WEIGHT.weight.grad
