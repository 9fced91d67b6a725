"""Find the shape and dtype of every node on fake tensors, without computing anything."""

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.passes.shape_prop import TensorMetadata

from course_lib.errors import GraphError
from course_lib.graph.node_effects import run_node
from course_lib.graph.program_inputs import placeholder_values
from course_lib.graph.recorder import EFFECTS, Recorder
from course_lib.graph.stand_ins import StandIns, give_momentum, tensors_held
from course_lib.isolation import preserving
from course_lib.layouts import require_plain
from course_lib.silence import no_logs

Result = TypeVar("Result")


class _Annotator(torch.fx.Interpreter):
    """Run a graph, and write the result and the effects of each node into its metadata."""

    def __init__(self, module: torch.nn.Module, graph: torch.fx.Graph, stand_ins: StandIns) -> None:
        super().__init__(module, graph=graph, garbage_collect_values=False)
        self._recorder = Recorder(stand_ins)

    def run_node(self, n: torch.fx.Node) -> Any:
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if n.op.startswith("call_"):
            module = self.fetch_attr(str(n.target)) if n.op == "call_module" else None
            result, n.meta[EFFECTS] = run_node(self._recorder, n, module, args, kwargs)
        else:
            result = getattr(self, n.op)(n.target, args, kwargs)
        n.meta["val"] = result
        described = torch.utils._pytree.tree_map_only(torch.Tensor, describe_tensor, result)
        if described is not None:
            n.meta["tensor_meta"] = described
        return result


def require_graph(asked_by: str, gm: object) -> None:
    """Raise `GraphError`, which names the function that asks, unless `gm` holds a `torch.fx.Graph`."""
    if not isinstance(getattr(gm, "graph", None), torch.fx.Graph):
        raise GraphError(
            f"{asked_by} got a {type(gm).__name__}; it expects a torch.fx.GraphModule, such as "
            "capture(model).graph_module."
        )


def require_several(asked_by: str, inputs: object) -> None:
    """Raise `GraphError`, which names the function that asks, for one tensor in place of several inputs."""
    if isinstance(inputs, torch.Tensor):
        raise GraphError(f"{asked_by} got a Tensor as inputs; it expects a tuple. One tensor x is given as (x,).")


def propagate_shapes(gm: torch.fx.GraphModule, example_inputs: Sequence[object]) -> torch.fx.GraphModule:
    """Write shape and dtype of each node into its metadata, and return the same graph module.

        >>> gm = propagate_shapes(torch.fx.symbolic_trace(lambda x: x + 1), [torch.empty(2, 3)])
        >>> [describe(node) for node in gm.graph.nodes]
        ['float32[2, 3]', 'float32[2, 3]', 'float32[2, 3]']

    Nothing is computed: the graph runs on fake tensors, which have a shape and no data. `node.meta["val"]` is the
    result of the node (a fake tensor, a number, None, or a tuple or dict of these), and `node.meta["tensor_meta"]` is
    the same with each tensor described by a `TensorMetadata`. An example input on the meta device represents a tensor
    on the device of the graph's parameters.

    Raises `GraphError`, naming the node, if the graph cannot run on inputs of these shapes.
    """
    require_graph("propagate_shapes", gm)
    require_several("propagate_shapes", example_inputs)
    example_inputs = placeholder_values(gm.graph, example_inputs)
    inputs = gm.graph.find_nodes(op="placeholder")
    required = [node for node in inputs if not node.args]
    if not len(required) <= len(example_inputs) <= len(inputs):
        names = ", ".join(str(node.target) for node in inputs)
        raise GraphError(
            f"The graph has {len(inputs)} inputs ({names}), and {len(example_inputs)} example inputs came."
        )

    def annotate(stand_ins: StandIns, module: torch.nn.Module, fakes: Sequence[Any]) -> None:
        _Annotator(module, gm.graph, stand_ins).run(*fakes)

    with explained_failure():
        run_on_fakes(gm, example_inputs, annotate)
    return gm


@contextlib.contextmanager
def explained_failure() -> Iterator[None]:
    """Raise `GraphError` with one sentence for whatever a graph raises on its inputs."""
    try:
        yield
    except GraphError:
        raise
    except Exception as error:  # an operator may raise anything about its operands
        said = " ".join(str(error).split())[:300]
        raise GraphError(f"The graph cannot run on these example inputs ({type(error).__name__}: {said})") from error


def run_on_fakes(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[object],
    run: Callable[[StandIns, torch.nn.Module, Sequence[Any]], Result],
) -> Result:
    """Call `run` with stand-ins, the modules of a graph and its inputs, and return its result.

    It runs without gradients, which is faster and lets it write to parameters. If it fails so, it runs once more with
    gradients for all that requires them, because the graph may run a backward pass itself. The modes and levels that a
    failed run has begun are ended.
    """
    stand_ins, module, fakes = on_fakes(gm, example_inputs)
    try:
        with preserving(None), no_logs(), stand_ins.mode, torch.no_grad():
            return run(stand_ins, module, fakes)
    except Exception as first:  # whatever an operator says about its operands
        stand_ins, module, fakes = on_fakes(gm, example_inputs)
        leaves = (torch.utils._pytree.tree_leaves(inputs) for inputs in (list(example_inputs), fakes))
        for given, fake in zip(*leaves, strict=True):
            if isinstance(given, torch.Tensor) and given.requires_grad:
                fake.requires_grad_()
        try:
            with preserving(None), no_logs(), stand_ins.mode, torch.enable_grad():
                return run(stand_ins, module, fakes)
        except Exception:  # the same, or what gradients forbid
            raise first from None


def on_fakes(gm: torch.fx.GraphModule, example_inputs: Sequence[object]) -> tuple[StandIns, torch.nn.Module, list[Any]]:
    """Return stand-ins of the tensors of a graph, and with them its modules and inputs, so that nothing real changes.

    The copies own fake tensors wherever the originals own real ones, so nothing large is copied. What shares memory
    shares it in the copies too. What is neither a tensor nor a container of PyTorch is copied whole. Raises
    `GraphError` if a module cannot be copied.
    """
    device = next((tensor.device for tensor in (*gm.parameters(), *gm.buffers())), torch.device("cpu"))
    require_plain("The graph", list(example_inputs), GraphError, (*gm.named_parameters(), *gm.named_buffers()))
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    held = (value for module in gm.modules() for value in vars(module).values())
    if any(isinstance(value, torch.ScriptObject) for value in held):  # packed weights of a quantised module, as a rule
        mode.cache_enabled = False  # it compares operands, and these cannot be compared
    stand_ins = StandIns(mode, device)
    owned = {id(tensor): stand_ins.of(tensor) for tensor in tensors_held(gm)}

    def fake(value: object) -> object:
        return stand_ins.of(value) if isinstance(value, torch.Tensor) else copy.deepcopy(value)

    try:
        return stand_ins, _attributes_of(gm, owned), torch.utils._pytree.tree_map(fake, list(example_inputs))
    except Exception as error:  # what a class of the user raises when it is copied
        said = " ".join(str(error).split())[:300]
        raise GraphError(
            f"A module or an input of the graph cannot be copied ({type(error).__name__}: {said}), and the graph runs "
            "on copies only, so that nothing of yours changes. Replace it, or give its class a `__deepcopy__`."
        ) from error


def _attributes_of(gm: torch.fx.GraphModule, owned: Mapping[int, torch.Tensor]) -> torch.nn.Module:
    """Return a module with copies of all attributes that a graph reads, but without the graph and its code.

    `owned` maps the identity of each tensor of `gm` to the tensor that replaces it.
    """
    attributes = {name: value for name, value in vars(gm).items() if name not in ("_graph", "meta")}
    module = torch.nn.Module()
    module.__dict__.update(copy.deepcopy(attributes, {**owned, id(gm): module}))
    give_momentum(module)
    return module


def describe_tensor(tensor: torch.Tensor) -> TensorMetadata:
    """Return shape, dtype and layout of a tensor, as torch.fx keeps them in metadata."""
    contiguous = torch.contiguous_format if tensor.is_contiguous() else None
    return TensorMetadata(tensor.shape, tensor.dtype, tensor.requires_grad, tensor.stride(), contiguous, False, {})


def describe(node: torch.fx.Node) -> str:
    """Return a short text for the result of a node, such as "float32[2, 3]"; empty if shapes were not propagated."""
    if "val" in node.meta:
        return describe_value(node.meta["val"])
    return describe_value(node.meta["tensor_meta"]) if "tensor_meta" in node.meta else ""


def describe_value(value: object) -> str:
    """Return a short text for a value, as `describe` does."""
    if isinstance(value, (torch.Tensor, TensorMetadata)):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(describe_value, value)) + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {describe_value(part)}" for key, part in value.items()) + "}"
    return str(value)
