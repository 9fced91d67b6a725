"""Tensors that are not plain: sparse gradients are compared, other sparse, nested and masked tensors are named."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.capture import compare_modes
from course_lib.errors import CaptureError, CourseError, FusionError, GraphError
from course_lib.fusion import fuse
from course_lib.graph import cost, propagate_shapes
from course_lib.verify import verify

EYE, X = torch.eye(4), torch.linspace(-1.0, 1.0, 16).reshape(4, 4)
SPARSE = EYE.to_sparse()
ROWS = [torch.ones(2, 3), torch.ones(4, 3)]


class Embedded(nn.Module):
    """A table whose gradient is sparse."""

    def __init__(self, table: type[nn.Embedding | nn.EmbeddingBag]) -> None:
        super().__init__()
        self.table, self.bias = table(10, 4, sparse=True), nn.Parameter(torch.ones(4))

    def forward(self, tokens: Tensor) -> Tensor:
        return F.gelu(self.table(tokens) + self.bias)


class OtherGradient(Embedded):
    def forward(self, tokens: Tensor) -> Tensor:
        h = self.table(tokens)
        return F.gelu(h * 2 - h.detach() + self.bias)


TOKENS = torch.tensor([[1, 2, 3], [4, 5, 5]])


@pytest.mark.parametrize("table", [nn.Embedding, nn.EmbeddingBag])
def test_a_table_with_a_sparse_gradient_is_fused_compared_and_verified(
    table: type[nn.Embedding | nn.EmbeddingBag],
) -> None:
    model = Embedded(table)
    result = fuse(model, (TOKENS,))
    assert (result.num_matches, result.lost) == (1, ())
    assert verify(model, result.graph_module, (TOKENS,)).passed
    assert compare_modes(model, (TOKENS,), modes=("fx", "make_fx")).verdicts == {
        "fx": "captured",
        "make_fx": "captured",
    }


def test_a_sparse_gradient_that_differs_is_seen() -> None:
    model, other = Embedded(nn.Embedding), OtherGradient(nn.Embedding)
    other.load_state_dict(model.state_dict())
    report = verify(model, other, (TOKENS,))
    assert any("gradient of table.weight" in str(one) for one in report.failures), report


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_inputs_and_results_of_eight_bits_are_compared(dtype: torch.dtype) -> None:
    for program, given in (
        (lambda x: x.to(torch.float32) + 1, X.to(dtype)),
        (lambda x: (x + 1).to(dtype), X),
    ):
        assert fuse(program, (given,)).lost == ()
        assert verify(program, program, (given,)).passed
        assert set(compare_modes(program, (given,), modes=("fx", "trace")).verdicts.values()) == {"captured"}
    assert not verify(lambda x: (x + 1).to(dtype), lambda x: (x + 9).to(dtype), (X,)).passed


OTHERS: dict[str, tuple[Callable[[], Tensor], str]] = {
    "coo": (lambda: EYE.to_sparse(), r"a sparse tensor; .*to_dense\(\)"),
    "csr": (lambda: EYE.to_sparse_csr(), r"a sparse tensor; .*to_dense\(\)"),
    "oneDNN": (lambda: EYE.to_mkldnn(), "a oneDNN tensor"),
    "jagged": (lambda: torch.nested.nested_tensor(ROWS, layout=torch.jagged), "a nested tensor; .*padded"),
    "nested": (lambda: torch.nested.nested_tensor(ROWS), "a nested tensor; .*padded"),
    "masked": (lambda: torch.masked.masked_tensor(EYE, EYE > 0), "a masked tensor; .*get_mask"),
    "quantised": (lambda: torch.quantize_per_tensor(EYE, 0.1, 0, torch.quint8), "a quantised tensor; .*dequantize"),
    "packed": (lambda: torch.ones(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2), "a packed tensor; .*as bytes"),
}


def _double(x: Tensor) -> Tensor:
    return x * 2


CALLS: dict[str, tuple[Callable[[Tensor], object], type[CourseError]]] = {
    "fuse": (lambda x: fuse(_double, (x,)), FusionError),
    "fuse of a graph": (lambda x: fuse(torch.fx.symbolic_trace(_double), (x,)), FusionError),
    "compare_modes": (lambda x: compare_modes(_double, (x,)), CaptureError),
    "verify": (lambda x: verify(_double, lambda given: given * 3, (x,)), FusionError),
    "cost": (lambda x: cost(_double, (x,)), GraphError),
    "propagate_shapes": (lambda x: propagate_shapes(torch.fx.symbolic_trace(_double), (x,)), GraphError),
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("name", CALLS)
def test_an_input_that_is_not_plain_is_named_with_a_remedy(name: str, kind: str) -> None:
    make, sentence = OTHERS[kind]
    call, error = CALLS[name]
    with pytest.raises(error, match=sentence.replace(" tensor", " tensor as input 0", 1)):
        call(make())


class Holds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("adjacency", SPARSE)

    def forward(self, x: Tensor) -> Any:
        return torch.sparse.mm(self.adjacency, x) + 1


def test_a_sparse_buffer_is_named() -> None:
    with pytest.raises(FusionError, match="a sparse tensor as adjacency"):
        fuse(Holds(), (X,))
    assert verify(Holds(), Holds(), (X,), dtypes=(torch.float32,)).passed


@pytest.mark.parametrize("program", [lambda x: torch.sparse.mm(x.to_sparse(), x) + 1, lambda x: SPARSE @ x])
def test_a_sparse_tensor_in_between_or_outside_is_named(program: Callable[[Tensor], Tensor]) -> None:
    for call in (fuse, cost):
        with pytest.raises(GraphError, match="The program makes a sparse tensor"):
            call(program, (X,))  # type: ignore[operator]
    assert torch.equal(SPARSE.to_dense(), EYE)
    assert compare_modes(program, (X,), modes=("fx",)).verdicts == {"fx": "captured"}


def test_sparse_results_are_compared_by_their_numbers() -> None:
    assert verify(lambda x: x.to_sparse(), lambda x: x.to_sparse(), (X,)).passed
    assert not verify(lambda x: x.to_sparse(), lambda x: (x + 1).to_sparse(), (X,)).passed
    assert not verify(lambda x: x.to_sparse(), lambda x: x + 0, (X,)).passed
