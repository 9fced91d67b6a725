"""The fused operators under `torch.compile`: one node, the same values, and dropout that stays random."""

from collections.abc import Callable

import pytest
import torch

from tests.course_lib.kernels.row_operators import ROW_OPERATORS, RowOperator

EACH = pytest.mark.parametrize("operator", ROW_OPERATORS, ids=lambda operator: operator.name)
RANDOM = pytest.mark.parametrize(
    "operator", [operator for operator in ROW_OPERATORS if operator.drops], ids=lambda operator: operator.name
)


@pytest.fixture(autouse=True)
def _fresh_compiler_and_numbers() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def _function(operator: RowOperator, p: float) -> Callable[..., torch.Tensor]:
    def function(*tensors: torch.Tensor) -> torch.Tensor:
        return operator.fused(tensors, p, True)

    return function


@EACH
@pytest.mark.parametrize("p", [0.0, 0.5])
def test_a_compiler_takes_the_operator_as_one_node(operator: RowOperator, p: float) -> None:
    targets: list[str] = []

    def backend(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., object]:
        targets.extend(str(node.target) for node in gm.graph.nodes if node.op == "call_function")
        return gm.forward

    tensors = operator.tensors(lambda: torch.randn(3, 5))
    torch.compile(_function(operator, p), backend=backend, fullgraph=True)(*tensors)
    assert targets == [f"course_lib.{operator.name}.default"]


@EACH
def test_symbolic_tracing_takes_the_operator_as_one_node(operator: RowOperator) -> None:
    graph = torch.fx.Tracer().trace(lambda x: operator.fused((x,) * len(operator.arguments), 0.5, True))
    called = [str(node.target) for node in graph.nodes if node.op == "call_function"]
    assert called == [f"course_lib.{operator.name}.default"]


@RANDOM
def test_two_equal_calls_in_one_compiled_program_drop_different_elements(operator: RowOperator) -> None:
    function = _function(operator, 0.5)
    tensors = operator.tensors(lambda: torch.randn(3, 32))
    compiled = torch.compile(lambda *tensors: (function(*tensors), function(*tensors)), backend="aot_eager")
    first, second = compiled(*tensors)
    assert not torch.equal(first, second)
    assert not torch.equal(first, compiled(*tensors)[0])


@RANDOM
def test_the_compiled_backward_pass_uses_the_mask_of_the_forward_pass(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(4, 32))
    compiled = torch.compile(_function(operator, 0.5), backend="aot_eager")

    def with_one_seed(*tensors: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return compiled(*tensors)

    output = with_one_seed(*tensors)
    (grad_x,) = torch.autograd.grad(output.square().sum() + output.sum(), tensors[:1])
    dropped = grad_x == 0
    assert 0.3 < dropped.double().mean() < 0.7
    x = tensors[0].detach()
    assert torch.equal(with_one_seed(x + 0.1 * dropped, *tensors[1:]), output)
    assert not torch.equal(with_one_seed(x + 0.1 * ~dropped, *tensors[1:]), output)


@pytest.mark.slow
@EACH
def test_inductor_compiles_around_the_operator_and_changes_nothing(operator: RowOperator) -> None:
    tensors = operator.tensors(lambda: torch.randn(16, 64))

    def function(*tensors: torch.Tensor) -> torch.Tensor:
        return operator.fused((tensors[0] * 2, *tensors[1:]), 0.0, True).relu()

    results = []
    for call in (function, torch.compile(function, fullgraph=True)):
        output = call(*tensors)
        results.append([output, *torch.autograd.grad(output.sum(), tensors)])
    for eager, compiled in zip(*results, strict=True):
        torch.testing.assert_close(compiled, eager)


@pytest.mark.slow
def test_inductor_draws_a_fresh_seed_in_each_call_and_keeps_it_for_the_backward_pass() -> None:
    operator = ROW_OPERATORS[1]
    x, *others = operator.tensors(lambda: torch.randn(16, 64))  # the sizes above and a factor of 2: kernels are there
    function = torch.compile(lambda x: operator.fused((x * 2, *others), 0.3, True), fullgraph=True)
    first, second = function(x), function(x)
    assert not torch.equal(first, second)
    dropped = torch.autograd.grad(first.square().sum() + first.sum(), x)[0] == 0
    assert 0.2 < dropped.double().mean() < 0.4
    torch.manual_seed(0)
    repeated = function(x)
    torch.manual_seed(0)
    assert torch.equal(function(x), repeated)
