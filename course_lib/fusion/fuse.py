"""`fuse`: capture a program, run the passes on its graph, and report what changed and what it costs."""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from course_lib.capture import Captured, capture
from course_lib.errors import FusionError
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.operands import remember_symbols
from course_lib.fusion.registry import chosen
from course_lib.fusion.result import FusionResult, Rejected
from course_lib.fusion.surgery import (
    added_buffers,
    check,
    copy_of,
    describe_new_nodes,
    finish,
    keep_out_of_state,
    keep_state,
)
from course_lib.graph import Cost, cost, propagate_shapes
from course_lib.graph.stand_ins import fake_like

Program = nn.Module | Callable[..., object] | Captured | torch.export.ExportedProgram
MAX_ROUNDS = 8  # of one pass: its fusions may make further ones possible


def fuse(
    program: Program,
    example_inputs: Sequence[object],
    passes: Iterable[str | GraphPass] | None = None,
    *,
    level: str = "exact",
) -> FusionResult:
    """Return a graph that computes what `program` computes with fewer launches and bytes, and a report on it.

        >>> result = fuse(lambda x, b: torch.nn.functional.gelu(x + b), (torch.zeros(2, 3), torch.zeros(3)))
        >>> result.num_matches, result.cost_before.launches, result.cost_after.launches
        (1, 2, 1)

    `program` is a module or function, captured with torch.fx; or a graph module from torch.fx, from `torch.compile`'s
    backends or from `torch._dynamo.export`; or a `Captured`; or the result of `torch.export.export`. The program is
    never changed, even if an error is raised. The graph shares its parameters and modules. `example_inputs` determine
    shapes and types, and the graph is correct for inputs of the same shapes and types. If an exported program has
    symbolic sizes, fusions that depend on them are decided when the graph runs, see `inserted_modules.py`. The graph of
    a backend takes its parameters as inputs too.

    `passes` are names from `PASSES`, or passes of your own, and run in the order given. Without it, all exact passes
    run except those that must be requested: `normalise`, `qkv_merge`, `sdpa`, and the two that fold a BatchNorm. A
    lossy pass must be requested too, and needs `level="lossy"`.

    Raises `FusionError` for a program, pass or level that it cannot work with, `CaptureError` if the program cannot be
    captured, and `GraphError` if the graph cannot run on inputs of these shapes.
    """
    selected = chosen(passes, level)
    gm = copy_of(_graph_of(program, example_inputs))
    remember_symbols(gm.graph)
    propagate_shapes(gm, example_inputs)
    added = added_buffers(gm, program)
    before = cost_of_one_run(gm, example_inputs)
    matches, rejected = run_all(selected, gm)
    total = sum(matches.values())
    after = cost_of_one_run(gm, example_inputs) if total else before
    if not isinstance(program, (Captured, torch.export.ExportedProgram)):
        keep_out_of_state(gm, added)
    return FusionResult(gm, total, rejected, matches, before, after)


def cost_of_one_run(gm: fx.GraphModule, example_inputs: Sequence[object]) -> Cost:
    """Return the cost of one forward run of a graph; it uses fake tensors, so nothing is computed or changed."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    tensors = {**dict(gm.named_parameters()), **dict(gm.named_buffers())}
    state = {name: fake_like(tensor.detach(), mode) for name, tensor in tensors.items()}
    inputs = [fake_like(value, mode) if isinstance(value, torch.Tensor) else value for value in example_inputs]
    with mode, torch.no_grad():
        return cost(lambda *given: torch.func.functional_call(gm, state, given), inputs)


def _graph_of(program: Program, example_inputs: Sequence[object]) -> fx.GraphModule:
    if isinstance(program, fx.GraphModule):
        return program
    if isinstance(program, Captured):
        program = program.graph_module
    elif isinstance(program, torch.export.ExportedProgram):
        program = program.module()
    elif callable(program):
        gm = capture(program, example_inputs).graph_module
        assert isinstance(gm, fx.GraphModule), "capture in its first mode gives a graph of torch.fx"
        if isinstance(program, nn.Module):
            keep_state(gm, program)
        return gm
    if not isinstance(program, fx.GraphModule):
        raise FusionError(
            f"fuse got a {type(program).__name__}; it expects a module, a function, or a graph of one, see capture()."
        )
    return program


def run_all(passes: Iterable[GraphPass], gm: fx.GraphModule) -> tuple[dict[str, int], tuple[Rejected, ...]]:
    """Run the passes on our copy in order; return the number of matches of each pass, and the rejected matches."""
    matches: dict[str, int] = {}
    rejected: list[Rejected] = []
    for one in passes:
        count, refusals = _run(one, gm)
        matches[one.name] = matches.get(one.name, 0) + count
        rejected += refusals
    if any(matches.values()):
        finish(gm)
    return matches, tuple(rejected)


def _run(one: GraphPass, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
    """Run one pass on our copy until it finds no match; return the number of matches, and the rejected ones."""
    total = 0
    rejected: list[Rejected] = []
    for _ in range(MAX_ROUNDS):
        count, rejected = one.transform(gm)
        if not count:
            break
        total += count
        check(gm)
        describe_new_nodes(gm)
    return total, rejected
