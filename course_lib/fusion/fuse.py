"""`fuse`: capture a program, run the passes on its graph, and report what changed and what it costs.

The graph is correct for inputs of the shapes and types of the example. If the program writes into a tensor, its inputs
must also have the strides of the example, and share memory with each other and with parameters only where those of the
example do. The graph shares parameters, buffers and the modules that are not fused with the program, so it follows
their changes. What else a fused module holds is fixed, such as `p` of a Dropout and `eps` of a LayerNorm, and its
training mode is that of the graph.

If an exported program has symbolic sizes, fusions that depend on them are decided when the graph runs, see
`inserted_modules.py`. The graph of a backend takes its parameters as inputs too. Where a graph has parts of which ATen
makes larger operators, such as `t` and `addmm` for `linear`, the result has these operators, if a pass fused something;
see `composites.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import fx, nn
from torch.utils._pytree import tree_leaves

from course_lib.capture import Captured, capture
from course_lib.capture.modes import require_initialised
from course_lib.errors import CaptureError, FusionError
from course_lib.fusion.capture_check import Outside, losses, warn
from course_lib.fusion.composites import in_whole_operators
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.kept_state import keep_state
from course_lib.fusion.operands import forget_constants, is_made_while_tracing, remember_symbols
from course_lib.fusion.registry import chosen
from course_lib.fusion.result import FusionResult, Rejected, refusal
from course_lib.fusion.rules import Objection
from course_lib.fusion.surgery import (
    added_buffers,
    check,
    copy_of,
    describe_new_nodes,
    finish,
    keep_out_of_state,
)
from course_lib.graph import Cost, cost, propagate_shapes
from course_lib.graph.program_inputs import forward_arguments, placeholder_values
from course_lib.graph.shapes import explained_failure, run_on_fakes
from course_lib.layouts import require_plain
from course_lib.module_hooks import HOOK_TABLES

Program = nn.Module | Callable[..., object] | Captured | torch.export.ExportedProgram
Inputs = tuple[tuple[object, ...], Mapping[str, object]]  # of one call: by place, and by name
_BEGINS_A_LEVEL = "_increment_nesting"  # how PyTorch names the functions that begin a level of torch.func
MAX_ROUNDS = 8  # of one pass: its fusions may make further ones possible


def fuse(
    program: Program,
    example_inputs: Sequence[object],
    passes: Iterable[str | GraphPass] | None = None,
    *,
    level: str = "exact",
    check: bool = True,
    example_kwarg_inputs: Mapping[str, object] | None = None,
) -> FusionResult:
    """Return a graph that computes what `program` computes with fewer launches and bytes, and a report on it.

        >>> result = fuse(lambda x, b: torch.nn.functional.gelu(x + b), (torch.zeros(2, 3), torch.zeros(3)))
        >>> result.num_matches, result.cost_before.launches, result.cost_after.launches
        (1, 2, 1)

    `program` is a module or function, captured with torch.fx; or a graph module from torch.fx, from `torch.compile`'s
    backends or from `torch._dynamo.export`; or a `Captured`; or the result of `torch.export.export`. The program is
    never changed, even if an error is raised, nor are random states and variables outside that its code refers to.
    The docstring of `course_lib.fusion.fuse` says for which inputs the graph is correct.

    `example_inputs` and `example_kwarg_inputs` are the inputs of a call by place and by name, as for `capture` and
    `torch.export.export`. A graph also takes one value for each of its placeholders.

    `passes` are names from `PASSES`, or passes of your own, and run in the order given. Without it, all exact passes
    run except those that must be requested: `normalise`, `qkv_merge`, `sdpa`, `matmul_scale`, `memory_order`, and the
    two that fold a BatchNorm. A lossy pass must be requested too, and needs `level="lossy"`.

    A module or function is run once on the example, and its captured graph too. If the graph does not do all that the
    program does, `lost` of the result says what, and a warning as well; `check=False` leaves this out.

    Raises `FusionError` for a program, pass or level that it cannot work with, `CaptureError` if the program cannot be
    captured, and `GraphError` if the graph cannot run on inputs of these shapes.
    """
    selected = chosen(passes, level)
    call = (tuple(example_inputs), dict(example_kwarg_inputs or {}))
    with _ordinary_tensors(program, call), Outside(program) as outside:
        result = _fused(program, call, selected, outside, checked=check)
    if result.lost:
        warn(result.lost)
    return result


def _fused(
    program: Program,
    call: Inputs,
    passes: Iterable[GraphPass],
    outside: Outside,
    *,
    checked: bool,
) -> FusionResult:
    with outside.watched():
        captured = _graph_of(program, call)
    is_graph = isinstance(program, (Captured, torch.export.ExportedProgram, fx.GraphModule))
    lost = losses(program, captured, call, outside) if checked and not is_graph else ()
    gm, example_inputs = copy_of(captured), placeholder_values(captured.graph, *call)
    remember_symbols(gm.graph)
    state = _state_of(program)
    forget_constants(gm.graph, state)
    passes, level = tuple(passes), _first_level(gm)
    if level is not None:
        unchanged = cost_of_one_run(gm, example_inputs)
        none = dict.fromkeys((one.name for one in passes), 0)
        return FusionResult(gm, 0, (_left_alone(level),), none, unchanged, unchanged, lost)
    propagate_shapes(gm, example_inputs)
    added = added_buffers(gm, program)
    before = cost_of_one_run(gm, example_inputs)
    whole = in_whole_operators(gm) if any(one.reads_operators for one in passes) else gm
    matches, rejected = run_all(passes, whole)
    total = sum(matches.values())
    gm = whole if total else gm  # what no pass changes stays as it was spelt
    after = cost_of_one_run(gm, example_inputs) if total else before
    if not isinstance(program, (Captured, torch.export.ExportedProgram)):
        keep_out_of_state(gm, added, state)
    return FusionResult(gm, total, rejected, matches, before, after, lost)


def _first_level(gm: fx.GraphModule) -> fx.Node | None:
    """Return the first node that begins a level of `torch.func`, such as one of vmap or grad; None without any."""
    graphs = [part.graph for part in gm.modules() if isinstance(part, fx.GraphModule)]
    calls = (node for graph in graphs for node in graph.nodes if node.op == "call_function")
    return next((node for node in calls if str(getattr(node.target, "__name__", "")).endswith(_BEGINS_A_LEVEL)), None)


def _left_alone(level: fx.Node) -> Rejected:
    """Report that a graph is left as it is: at a level, an operator means what its transformation makes of it."""
    reason = f"{level} begins a level of torch.func, so this graph is left as it is"
    return refusal("fuse", (level.name,), Objection("torch.func level", reason), level)


def _held(program: object) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(program, nn.Module | torch.export.ExportedProgram):
        yield from (*program.named_parameters(), *program.named_buffers())


@contextmanager
def _ordinary_tensors(program: object, call: Inputs) -> Iterator[None]:
    """Let the tensors that are made while fusing have data and allow gradients, whatever mode the caller is in.

    The graph keeps constants, and will run outside of `torch.inference_mode` and of a default device without data.
    """
    require_initialised("fuse", program)
    require_plain("fuse", call, FusionError, _held(program))
    with ExitStack() as stack:
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
        if torch.get_default_device().type == "meta":
            held = [tensor for _, tensor in _held(program)]
            tensors = [one for one in (*held, *tree_leaves(call)) if isinstance(one, torch.Tensor)]
            stack.enter_context(tensors[0].device if tensors else torch.device("cpu"))
        yield


def cost_of_one_run(gm: fx.GraphModule, example_inputs: Sequence[object]) -> Cost:
    """Return the cost of one forward run of a graph; it uses fake tensors, so nothing is computed or changed."""

    def measured(_: object, module: nn.Module, inputs: Sequence[object]) -> Cost:
        if not torch.is_grad_enabled():  # then what requires a gradient may be written in place, or with `out=`
            module.requires_grad_(False)
            for tensor in filter(torch.is_tensor, tree_leaves(list(inputs))):
                tensor.requires_grad_(False)
        return cost(lambda *given: type(gm).forward(module, *forward_arguments(gm.graph, given)), inputs)

    with explained_failure():
        return run_on_fakes(gm, example_inputs, measured)


def _graph_of(program: Program, call: Inputs) -> fx.GraphModule:
    if isinstance(program, nn.Module):
        _refuse_hooks(program)
    if isinstance(program, fx.GraphModule):
        return program
    if isinstance(program, Captured):
        program = program.graph_module if program.exported is None else program.exported.module()
    elif isinstance(program, torch.export.ExportedProgram):
        program = program.module()
    elif callable(program):
        gm = _traced(program, call)
        assert isinstance(gm, fx.GraphModule), "capture in its first mode gives a graph of torch.fx"
        if isinstance(program, nn.Module):
            keep_state(gm, program)
        return gm
    if not isinstance(program, fx.GraphModule):
        raise FusionError(
            f"fuse got a {type(program).__name__}; it expects a module, a function, or a graph of one, see capture()."
        )
    return program


def _traced(program: Callable[..., object], call: Inputs) -> fx.GraphModule:
    """Return the graph of torch.fx of a program; the error for a model that it refuses names the other way."""
    try:
        return capture(program, call[0], example_kwarg_inputs=call[1]).graph_module
    except CaptureError as error:
        if not isinstance(program, nn.Module) or isinstance(program, torch.jit.ScriptModule):
            raise
        by_name = (", {...}", ", example_kwarg_inputs={...}") if call[1] else ("", "")
        raise CaptureError(
            f"{error} If torch.export takes the model whole, as it does most of Hugging Face, fuse what it gives: "
            f"fuse(torch.export.export(model, inputs{by_name[0]}), inputs{by_name[1]})."
        ) from error.__cause__


def _state_of(program: Program) -> Mapping[str, torch.Tensor]:
    """Return the parameters and buffers of a program by path; those that a tracer made are constants of a graph."""
    if isinstance(program, Captured):
        return _state_of(program.graph_module if program.exported is None else program.exported)
    if isinstance(program, torch.export.ExportedProgram):
        return {**dict(program.named_parameters()), **dict(program.named_buffers())}
    if not isinstance(program, nn.Module):
        return {}
    given = (*program.named_parameters(remove_duplicate=False), *program.named_buffers(remove_duplicate=False))
    is_graph = isinstance(program, fx.GraphModule)
    return {path: tensor for path, tensor in given if not (is_graph and is_made_while_tracing(path))}


def _refuse_hooks(program: nn.Module) -> None:
    """Raise `FusionError` for hooks of the model itself, which a graph does not call; `torch.export` has its own."""
    names = [
        name.strip("_").replace("_", " ") for name in HOOK_TABLES if any(map(_is_own, vars(program)[name].values()))
    ]
    if not isinstance(program, fx.GraphModule | torch.jit.ScriptModule) and "forward" in vars(program):
        names.append("a forward method of its own, set on the instance")
    if names:
        raise FusionError(
            f"fuse got a {type(program).__name__} with {' and '.join(names)}, which its graph would not call. Remove "
            "them, fuse, and register them on the result; or give fuse the part of the model inside."
        )


def _is_own(hook: object) -> bool:
    return not str(getattr(hook, "__module__", "")).startswith("torch.")


def run_all(passes: Iterable[GraphPass], gm: fx.GraphModule) -> tuple[dict[str, int], tuple[Rejected, ...]]:
    """Run the passes on our copy in order; return the number of matches of each pass, and the rejected matches.

    They run again as long as one of them fuses something, because an earlier pass may fuse what a later one has made.
    So a second `fuse` of the result changes nothing.
    """
    passes = tuple(passes)
    matches = dict.fromkeys((one.name for one in passes), 0)
    rejected: list[Rejected] = []
    for number in range(MAX_ROUNDS):
        before, refused = sum(matches.values()), list[Rejected]()
        for one in passes:
            count, refusals = _run(one, gm)
            matches[one.name] += count
            refused += refusals
        changed = sum(matches.values()) > before
        if changed or not number:  # a round without a match sees only what the fusions of the last one left
            rejected = refused
        if not changed or len(passes) == 1:
            break
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
