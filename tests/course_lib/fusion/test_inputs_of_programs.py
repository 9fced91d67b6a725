"""`fuse` takes the inputs of a call as the program does: nested, by place and by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.capture import capture
from course_lib.errors import GraphError
from course_lib.fusion import FusionResult, fuse
from course_lib.graph import propagate_shapes

X, BIAS, SCALE = torch.linspace(-2.0, 2.0, 16).reshape(2, 8), torch.linspace(0.0, 1.0, 8), torch.tensor(2.0)


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor, scale: Tensor | None = None, *, bias: Tensor, times: int = 1) -> Tensor:
        h = F.gelu(self.linear(x) + bias)
        return h * times if scale is None else h * scale * times


class Nested(Named):
    def forward(self, d: Mapping[str, Tensor], rest: Any = None, **named: Tensor) -> Any:  # type: ignore[override]
        h = super().forward(d["x"], bias=d["bias"], **named)
        return {"h": h, "more": [h + 1, rest[0] * 2 if rest else h]}


class Several(Named):
    def forward(self, *given: Any) -> Tensor:  # type: ignore[override]
        return super().forward(*given[:2], bias=given[2][0])


@dataclass(frozen=True)
class Case:
    """The inputs of one call."""

    program: Callable[[], nn.Module]
    inputs: tuple[Any, ...]
    named: Mapping[str, Any] = field(default_factory=dict)


EXPORTED: dict[str, Case] = {
    "by place": Case(Named, (X, SCALE), {"bias": BIAS}),
    "by name": Case(Named, (X,), {"bias": BIAS, "scale": SCALE}),
    "all by name": Case(Named, (), {"bias": BIAS, "x": X}),
    "a dict and None": Case(Nested, ({"x": X, "bias": BIAS}, None)),
    "a dict in another order": Case(Nested, ({"bias": BIAS, "x": X}, [X]), {"scale": SCALE}),
    "several": Case(Several, (X, SCALE, [BIAS])),
}
TRACED: dict[str, Case] = {
    "by name": Case(Named, (X,), {"scale": SCALE, "bias": BIAS}),
    "all by name": Case(Named, (), {"scale": SCALE, "bias": BIAS, "x": X}),
    "without one in between": Case(Named, (X,), {"times": 3, "bias": BIAS}),
}


def _same(case: Case, program: nn.Module, result: FusionResult) -> None:
    assert result.num_matches_by_pass["bias_gelu"] == 1
    assert result.cost_before is not None
    assert result.cost_before.launches > 0
    expected = program(*case.inputs, **case.named)
    torch.testing.assert_close(result.graph_module(*case.inputs, **case.named), expected)


@pytest.mark.parametrize("case", EXPORTED)
@pytest.mark.parametrize("make", ["export", "capture", "graph module"])
def test_an_exported_program_is_fused_with_the_inputs_that_it_was_exported_with(case: str, make: str) -> None:
    one = EXPORTED[case]
    program = one.program()
    given: Any = torch.export.export(program, one.inputs, dict(one.named))
    if make == "capture":
        given = capture(program, one.inputs, example_kwarg_inputs=one.named, mode="export")
    elif make == "graph module":
        given = given.module()
    _same(one, program, fuse(given, one.inputs, example_kwarg_inputs=one.named))


def test_an_exported_program_still_takes_a_value_for_each_placeholder_and_inputs_by_either_way() -> None:
    case, program = EXPORTED["a dict and None"], Nested()
    exported = torch.export.export(program, case.inputs)
    _same(case, program, fuse(exported, (X, BIAS, None)))
    by_name = EXPORTED["by name"]
    named = Named()
    _same(by_name, named, fuse(torch.export.export(named, (X,), dict(by_name.named)), (X, BIAS, SCALE)))
    flipped = {"bias": BIAS, "scale": SCALE, "x": X}
    result = fuse(torch.export.export(named, (X, SCALE), {"bias": BIAS}), (), example_kwarg_inputs=flipped)
    _same(EXPORTED["by place"], named, result)
    assert propagate_shapes(exported.module(), case.inputs).graph.find_nodes(op="placeholder")[0].meta["val"].ndim == 2


@pytest.mark.parametrize("case", TRACED)
@pytest.mark.parametrize("captured", [False, True])
def test_a_program_for_torch_fx_takes_inputs_by_name(case: str, captured: bool) -> None:
    one = TRACED[case]
    program = one.program()
    given = capture(program, one.inputs, example_kwarg_inputs=one.named) if captured else program
    result = fuse(given, one.inputs, example_kwarg_inputs=one.named)
    assert result.lost == ()
    _same(one, program, result)


def test_what_a_capture_loses_is_seen_with_inputs_by_name() -> None:
    def branches(x: Tensor, scale: Tensor) -> Tensor:
        print("called")
        return x * scale

    with pytest.warns(UserWarning, match="prints"):
        assert fuse(branches, (), example_kwarg_inputs={"scale": SCALE, "x": X}).lost


@pytest.mark.parametrize(
    ("inputs", "named", "words"),
    [
        ((), {}, "takes d, rest, with 3 tensors.* 0 example inputs came by place. Give the inputs that"),
        (({"x": X}, None), {}, "takes d, rest, with 3"),
        (({"x": X, "bias": BIAS}, None), {"scale": SCALE}, r"2 example inputs came by place, and 1 by name \(scale\)"),
        ((X, BIAS, None, X), {}, "4 example inputs came"),
    ],
)
def test_inputs_that_an_exported_program_does_not_take_are_named(
    inputs: tuple[Any, ...], named: dict[str, Any], words: str
) -> None:
    exported = torch.export.export(Nested(), ({"x": X, "bias": BIAS}, None))
    with pytest.raises(GraphError, match=words):
        fuse(exported, inputs, example_kwarg_inputs=named)


@pytest.mark.parametrize("named", [{"nothing": X}, {"x": X, "bias": BIAS}, {"scale": SCALE}])
def test_inputs_by_name_that_a_graph_of_torch_fx_does_not_take_are_named(named: dict[str, Any]) -> None:
    graph = capture(Named(), (X, SCALE), example_kwarg_inputs={"bias": BIAS}).graph_module
    with pytest.raises(GraphError, match="takes x, scale, bias; 1 example inputs came by place, and by name"):
        fuse(graph, (X,), example_kwarg_inputs=named)
