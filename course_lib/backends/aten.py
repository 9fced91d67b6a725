"""Decompose a captured graph into few ATen operators, and pass compilers to `torch.compile`.

This is the one module of the package that uses private parts of PyTorch, which may change.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.fx.experimental.proxy_tensor import make_fx

from course_lib.errors import BackendError
from course_lib.fusion.effects import is_pure, mutates
from course_lib.fusion.kept_state import hold
from course_lib.graph import Cost, cost

GraphCompiler = Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]

# Operators that are decomposed into several smaller ones before a target is asked. Random operators are not among
# them, because their results would differ from those of eager PyTorch.
DECOMPOSED = """
    addcmul addcdiv native_dropout_backward _softmax _softmax_backward_data _log_softmax
    _log_softmax_backward_data gelu gelu_backward silu silu_backward elu softplus leaky_relu hardtanh native_layer_norm
    native_layer_norm_backward native_group_norm native_batch_norm_backward _native_batch_norm_legit_functional
    _native_batch_norm_legit_no_training native_batch_norm _native_batch_norm_legit tanh_backward sigmoid_backward
    threshold_backward mse_loss mse_loss_backward
    rsub square lerp masked_fill new_zeros new_ones new_full clamp t transpose
""".split()  # noqa: SIM905  # a list of so many names reads best as a block


def decompose(gm: fx.GraphModule, example_inputs: Sequence[object]) -> fx.GraphModule:
    """Return a graph of core ATen operators that computes what `gm` computes, with a fake value at each node.

    Nothing is computed. The new graph holds the parameters and buffers of `gm`, not copies, and in-place changes become
    copies into the changed tensors at the end. Example inputs are real or fake tensors, or sizes.

    Raises `BackendError` if the graph cannot run on such inputs.
    """
    program, state, fakes, mode = _as_function(gm, example_inputs)
    changing = any(mutates(node) for node in gm.graph.nodes)
    functional = torch.func.functionalize(program, remove="mutations") if changing else program
    try:
        with mode, torch.no_grad():
            traced = make_fx(functional, decomposition_table=dict(_decompositions()))(*fakes)
    except Exception as error:  # the graph may run into any error of any operator
        said = " ".join(str(error).split())[:300]
        raise BackendError(
            f"The graph cannot run on these example inputs ({type(error).__name__}: {said}). "
            "Give inputs of the shapes and types that it takes, parameters too where they are inputs of the graph."
        ) from error
    return _with_state(traced, state)


def eager_cost(gm: fx.GraphModule, example_inputs: Sequence[object]) -> Cost:
    """Return the cost of a graph in eager PyTorch, without running it on real tensors."""
    program, _, fakes, mode = _as_function(gm, example_inputs)
    with mode, torch.no_grad():
        return cost(program, fakes)


def outside_of_tracing() -> AbstractContextManager[object]:
    """Switch off the fake mode of the current tracer, such as AOTAutograd, so that another fake mode can be used."""
    return unset_fake_temporarily()


def fake_mode_of(graph: fx.Graph) -> FakeTensorMode:
    """Return the mode in which the fake values at the nodes of a graph were made."""
    found = (node.meta["val"].fake_mode for node in graph.nodes if isinstance(node.meta.get("val"), FakeTensor))
    return next(found, None) or FakeTensorMode()


def compiled_ahead(
    forward: GraphCompiler, backward: GraphCompiler, inference: GraphCompiler
) -> Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]:
    """Return a backend for `torch.compile` that compiles forward and backward graph before the first run.

    AOTAutograd makes the graphs. They are functional graphs of ATen operators with parameters as inputs.
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func as boxed

    def boxing(compiler: GraphCompiler) -> Callable[..., Any]:
        return lambda gm, example_inputs: boxed(compiler(gm, example_inputs))

    return aot_autograd(fw_compiler=boxing(forward), bw_compiler=boxing(backward), inference_compiler=boxing(inference))


def has_symbols(values: Sequence[object]) -> bool:
    """Return whether a size among values is a symbol, which stands for any number."""
    sizes = [size for value in values for size in (value.shape if isinstance(value, torch.Tensor) else (value,))]
    return any(isinstance(size, torch.SymInt) for size in sizes)


@functools.cache
def _decompositions() -> Mapping[Any, Callable[..., Any]]:
    from torch._decomp import get_decompositions

    aten = torch.ops.aten
    return {
        **get_decompositions([getattr(aten, name) for name in DECOMPOSED]),
        aten.mean.dim: _mean,
        aten.mean.default: lambda x, dtype=None: _mean(x, range(x.dim()), False, dtype=dtype),
        aten.var_mean.correction: _var_mean,
        aten.split.Tensor: _split,
        aten.addmm.default: _add_product,
        aten.baddbmm.default: _add_product,
        aten.full_like.default: _full_like,
        aten.zeros_like.default: lambda x, **options: _full_like(x, 0, **options),
        aten.ones_like.default: lambda x, **options: _full_like(x, 1, **options),
    }


def _mean(
    x: torch.Tensor, dims: Sequence[int] | None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> torch.Tensor:
    dims = list(dims) if dims else list(range(x.dim()))
    return x.sum(dims, keepdim=keepdim, dtype=dtype) / _count(x, dims)


def _var_mean(
    x: torch.Tensor, dims: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    dims = list(dims) if dims else list(range(x.dim()))
    mean = x.sum(dims, keepdim=True) / _count(x, dims)
    centred = x - mean
    free = _count(x, dims) - (1 if correction is None else correction)
    variance = (centred * centred).sum(dims, keepdim=keepdim) / free
    return variance, mean if keepdim else mean.squeeze(dims)


def _count(x: torch.Tensor, dims: Sequence[int]) -> int:
    count = 1
    for dim in dims:
        count = count * x.shape[dim]  # not math.prod, which would turn a symbol into a number
    return count


def _split(x: torch.Tensor, size: int, dim: int = 0) -> list[torch.Tensor]:
    return [torch.ops.aten.slice.Tensor(x, dim, begin, begin + size) for begin in range(0, x.shape[dim], size)]


def _add_product(
    bias: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    product = torch.mm(left, right) if left.dim() == 2 else torch.bmm(left, right)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product  # the bias is ignored, even if it holds infinities or NaN
    return product + (bias if beta == 1 else bias * beta)


def _full_like(
    x: torch.Tensor,
    fill_value: float,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    **layout: object,
) -> Any:
    if not x.is_contiguous():
        return NotImplemented  # the result has the strides of x, which only the operator itself gives
    return torch.full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def _as_function(
    gm: fx.GraphModule, example_inputs: Sequence[object]
) -> tuple[Callable[..., Any], dict[str, torch.Tensor], list[Any], FakeTensorMode]:
    """Return a graph as a function of its state and inputs, its state, and fake arguments with their mode."""
    state = {**dict(gm.named_parameters()), **dict(gm.named_buffers())}
    mode = next((each.fake_mode for each in example_inputs if isinstance(each, FakeTensor)), None) or FakeTensorMode()

    def program(*given: Any) -> Any:
        return torch.func.functional_call(gm, dict(zip(state, given, strict=False)), given[len(state) :])

    return program, state, [_fake(value, mode) for value in (*state.values(), *example_inputs)], mode


def _fake(value: object, mode: FakeTensorMode) -> object:
    if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor):
        return value
    with mode:
        return torch.empty_strided(tuple(value.shape), value.stride(), dtype=value.dtype, device=value.device)


def _with_state(traced: fx.GraphModule, state: Mapping[str, torch.Tensor]) -> fx.GraphModule:
    """Return a traced graph in which the first inputs are attributes again, each with a flat name."""
    inputs = traced.graph.find_nodes(op="placeholder")
    for number, (node, tensor) in enumerate(zip(inputs, state.values(), strict=False)):
        with traced.graph.inserting_before(node):
            hold(traced, f"state_{number}", tensor)
            read = traced.graph.create_node("get_attr", f"state_{number}")
        read.meta = dict(node.meta)
        node.replace_all_uses_with(read)
        traced.graph.erase_node(node)
    # Keep nodes with effects even without users: they draw random numbers in order, or change a tensor.
    traced.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output") or not is_pure(node))
    traced.recompile()
    return traced
