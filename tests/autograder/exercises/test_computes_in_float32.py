"""The launcher of an answer runs again on float32, and may return something of another form there."""

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from autograder.exercises.triton_kernels import bias_quick_gelu
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import Case

HALF = torch.ones(2, 3, dtype=torch.float16)


@pytest.mark.parametrize(
    ("outputs", "says"),
    [
        ((HALF.float(), HALF.float()), ""),
        ((HALF, HALF.bool()), ""),
        ((HALF.float(),), "of the shapes \\[\\(2, 3\\)\\]"),
        ((HALF.float(), HALF[0]), "of the shapes"),
        ((HALF.float(), HALF.float() * 2), "rounded once"),
        ((HALF.float(), ~HALF.bool()), "rounded once"),
    ],
)
def test_outputs_for_float32_of_another_form_fail(
    outputs: tuple[torch.Tensor, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(case: Case, function: str) -> Any:
        narrow = case.args[0].dtype is torch.float16
        return SimpleNamespace(outputs=(HALF, HALF.float()) if narrow else outputs)

    monkeypatch.setattr(bias_quick_gelu, "holds", lambda *_, **__: lambda *_: None)
    check = bias_quick_gelu.computes_in_float32(lambda _: [Case((HALF,))], lambda x: (x, x.float()), ("y", "the mean"))
    answer: Any = SimpleNamespace(run=run)
    with pytest.raises(CheckFailedError, match=says) if says else contextlib.nullcontext():
        check(answer, Draw(1, "exercise", "check"))
