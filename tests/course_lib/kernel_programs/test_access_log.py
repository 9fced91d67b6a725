"""The log of a kernel's accesses to memory: its own tests run where Triton interprets, in a fork."""

import importlib
import os
import re
from pathlib import Path

import pytest

from course_lib.errors import KernelError
from course_lib.kernel_programs import AccessMap, interpreter_of_triton
from tests.autograder.host.forked_command import fork_command

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
FRESH = HERE.parent / "kernels" / "fresh_triton.py"


def test_the_log_holds_in_the_interpreter() -> None:
    words = [str(FRESH), str(HERE / "logged_programs.py")]
    status, printed = fork_command(
        words, ROOT, {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    ).finish()
    assert status == 0, printed[-3000:]
    assert int(re.findall(r"(\d+) passed", printed)[-1]) == 31


def test_a_triton_that_compiles_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    language = importlib.import_module("triton.language")  # in the environment as it is now, if nobody has imported it
    if type(language.sum).__name__ == "InterpretedFunction":  # another test of this process has imported it so
        monkeypatch.setattr(language, "sum", language.sum.fn)
    with pytest.raises(KernelError, match="use_interpreter"):
        interpreter_of_triton()


def test_a_map_of_many_cells_is_text() -> None:
    drawn = AccessMap("x", "load", (1, 5000), ((0,),) * 5000)
    assert drawn._repr_html_() == "<p>x, loaded: row 0: elements 0 to 4999 by program 0.</p>"


@pytest.mark.parametrize(
    ("programs", "shown"), [((), ""), ((3,), "3"), ((3, 3), "3×2"), ((0, 1, 2), "0–2"), ((4, 9, 2), "2…9")]
)
def test_a_cell_names_the_programs_that_touched_its_element(programs: tuple[int, ...], shown: str) -> None:
    assert f'text-anchor="middle">{shown}</text>' in AccessMap("x", "load", (1, 1), (programs,))._repr_svg_()
