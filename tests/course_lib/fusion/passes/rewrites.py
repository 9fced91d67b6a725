"""What the tests of every pass ask: that it fires, that nothing else changed, and that look-alikes are left alone."""

from collections.abc import Callable, Sequence

import torch
from torch import nn

from course_lib.fusion import FusionResult, fuse
from course_lib.graph import count_operators
from course_lib.verify import verify

Program = nn.Module | Callable[..., object]


def fused(program: Program, inputs: Sequence[object], name: str, count: int = 1, **options: object) -> FusionResult:
    """Run one pass; see that it fires `count` times and lowers the cost, and that a second run changes nothing."""
    result = fuse(program, inputs, (name,), **options)  # type: ignore[arg-type]
    assert result.num_matches_by_pass == {name: count}, result.explain()
    assert result.cost_before is not None
    assert result.cost_after is not None
    again = fuse(result.graph_module, inputs, (name,), **options)  # type: ignore[arg-type]
    assert again.num_matches == 0
    assert count_operators(again.graph_module) == count_operators(result.graph_module)
    return result


def same(program: Program, result: FusionResult, inputs: Sequence[object], **options: object) -> None:
    """See that values, gradients, strides, aliasing and state agree in both modes and precisions."""
    report = verify(program, result.graph_module, inputs, **options)  # type: ignore[arg-type]
    assert report.passed, str(report)


def left_alone(program: Program, inputs: Sequence[object], name: str, *rules: str) -> FusionResult:
    """See that a look-alike is left as it is, for the reasons given, and that each refusal says what would help."""
    before = fuse(program, inputs, ())
    result = fuse(program, inputs, (name,))
    assert result.num_matches == 0
    assert tuple(refusal.rule for refusal in result.rejected) == rules
    assert all(refusal.remedy and refusal.source for refusal in result.rejected)
    assert count_operators(result.graph_module) == count_operators(before.graph_module)
    return result


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return normal numbers that are the same in each run."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=dtype)
