"""Which body of an operator runs, and the sentence that says why it is not the kernel; with stand-ins for tensors."""

import sys
import warnings
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from course_lib.kernels import bias_gelu, dispatch
from course_lib.kernels.dispatch import runs_as_kernel


@pytest.fixture(autouse=True)
def _nothing_said_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    dispatch._say_once.cache_clear()
    dispatch._obstacle_of_device.cache_clear()
    monkeypatch.setattr(dispatch, "_INTERPRETS", False)
    monkeypatch.setattr(dispatch, "_has_triton", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))


def _on_cuda(dtype: torch.dtype = torch.float16, columns: int = 768) -> Any:
    return SimpleNamespace(is_cuda=True, device=torch.device("cuda", 0), dtype=dtype, shape=(4, columns))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("columns", [1, 768, 8192])
def test_what_the_kernels_are_written_for_runs_on_them_in_silence(dtype: torch.dtype, columns: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert runs_as_kernel("bias_gelu", _on_cuda(dtype, columns))


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [(_on_cuda(torch.float64), "given torch.float64"), (_on_cuda(columns=8193), "at most 8,192 elements")],
)
def test_what_they_are_not_written_for_is_said_once(tensor: Any, reason: str) -> None:
    with pytest.warns(UserWarning, match=reason) as caught:
        assert [runs_as_kernel("bias_gelu", tensor) for _ in range(2)] == [False, False]
    assert len(caught) == 1
    assert str(caught[0].message).startswith("bias_gelu runs as separate PyTorch operators")
    with pytest.warns(UserWarning, match="bias_silu"):
        assert not runs_as_kernel("bias_silu", tensor)


def test_a_machine_without_triton_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_has_triton", lambda: False)
    with pytest.warns(UserWarning, match="pip install triton"):
        assert not runs_as_kernel("bias_gelu", _on_cuda())


@pytest.mark.parametrize(
    ("capability", "dtype", "runs"),
    [
        ((7, 5), torch.float16, True),
        ((7, 5), torch.bfloat16, False),
        ((8, 0), torch.bfloat16, True),
        ((6, 1), torch.float16, False),
    ],
)
@pytest.mark.filterwarnings("ignore:bias_gelu runs")
def test_an_old_gpu_falls_back_where_triton_would_fail(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], dtype: torch.dtype, runs: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert runs_as_kernel("bias_gelu", _on_cuda(dtype)) == runs


def test_the_cpu_takes_the_kernel_only_when_triton_interprets(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.zeros(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not runs_as_kernel("bias_gelu", x)
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        assert not runs_as_kernel("bias_gelu", x)  # set too late: for other kernels
        monkeypatch.setattr(dispatch, "_INTERPRETS", True)
        assert runs_as_kernel("bias_gelu", x)
        assert not runs_as_kernel("bias_gelu", x.double())


def test_calling_the_operators_on_the_cpu_imports_none_of_our_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("course_lib.kernels.triton.")]:
        monkeypatch.setitem(sys.modules, name, None)  # so that importing it fails
    monkeypatch.setitem(sys.modules, "course_lib.kernels.triton", None)
    x = torch.zeros(2, 3, requires_grad=True)
    bias_gelu(x, torch.zeros(3)).sum().backward()
    monkeypatch.setattr(dispatch, "_INTERPRETS", True)
    with pytest.raises(ModuleNotFoundError, match=r"course_lib\.kernels\.triton"):
        bias_gelu(x, torch.zeros(3))
