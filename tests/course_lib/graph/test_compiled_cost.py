"""Inductor's own counters say what was worked out by hand; when PyTorch moves them, these tests say so."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.errors import GraphError
from course_lib.graph.generated_code import CompiledCost, compiled_cost

ROWS, N = 32, 256
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make kernels that do nothing of what is generated, on which the counts do not depend."""
    from torch._inductor import async_compile

    monkeypatch.setattr(async_compile.AsyncCompile, "cpp_pybinding", lambda *generated: lambda *tensors: None)


def _tail(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(F.gelu(x + bias) + residual, (N,))


def _layer(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return _tail(x @ weight, bias, residual)


def _broken(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    h = F.gelu(x + bias)
    torch._dynamo.graph_break()
    return F.layer_norm(h + residual, (N,))


def _inputs() -> tuple[torch.Tensor, ...]:
    return torch.randn(ROWS, N), torch.randn(N), torch.randn(ROWS, N), torch.randn(N, N)


def _moved(text: str) -> str:
    return f"torch {torch.__version__} counts otherwise than 2.13; see course_lib/graph/generated_code.py: {text}"


def test_a_fused_program_moves_the_fewest_bytes_and_a_graph_break_adds_a_round_trip() -> None:
    x, bias, residual, _ = _inputs()
    fused, broken = compiled_cost(_tail, (x, bias, residual)), compiled_cost(_broken, (x, bias, residual))
    large = ROWS * N * 4
    # x, residual and bias read, result written
    assert fused == CompiledCost(1, 0, 3 * large + N * 4, 1, ()), _moved("one fused kernel")
    # the intermediate is written and read once more
    assert broken == CompiledCost(2, 0, 5 * large + N * 4, 2, ()), _moved("a graph break")


def test_a_matrix_product_is_a_call_of_the_library() -> None:
    found = compiled_cost(_layer, _inputs())
    product = 2 * ROWS * N + N * N + N  # operands, bias and result of addmm
    assert found == CompiledCost(1, 1, 4 * (product + 3 * ROWS * N), 1, ()), _moved("a product and a kernel")


def test_code_that_looks_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.utils

    monkeypatch.setattr(torch._inductor.utils, "run_and_get_code", lambda fn, *inputs: (None, ["new_way()"]))
    with pytest.raises(GraphError, match="needs to be adapted"):
        compiled_cost(_tail, _inputs()[:3])
