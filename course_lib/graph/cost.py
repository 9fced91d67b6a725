"""Count what a program costs in launches, bytes and floating-point operations, without measuring time.

Counts are exact and the same on every machine. They describe the operators of eager PyTorch, one after the other:
each launches one kernel, reads its operands from memory and writes its results.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import flop_counter
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.errors import GraphError
from course_lib.graph.memory import ByteBound, Storages, distinct_bytes, storage_of, tensors_in
from course_lib.graph.noted_launches import Launch, noted_launches
from course_lib.graph.operator_calls import WRITTEN_OUT, Call, calls_of, is_free
from course_lib.graph.shapes import describe_value, require_several
from course_lib.isolation import modes_kept
from course_lib.layouts import require_plain

# Operators in place that overwrite their first operand without reading it.
OVERWRITING = frozenset(
    "aten::copy_ aten::fill_ aten::zero_ aten::normal_ aten::uniform_ aten::bernoulli_ aten::random_".split()  # noqa: SIM905
)
# Operators that read as many rows of a table, their first operand, as they write.
GATHERS = frozenset({"aten::embedding", "aten::index_select"})


@dataclass(frozen=True)
class Cost:
    """Hold the cost of one run; two costs are equal if their launches and their bytes moved are equal."""

    launches: int
    bytes_read: int
    bytes_written: int
    operators: tuple[str, ...] = field(default=(), compare=False)  # the operator of each launch, in order
    flops: int = field(default=0, compare=False)  # of matrix products, convolutions and attention
    minimum_bytes: int = field(default=0, compare=False)  # of one ideal kernel: inputs read once, results written once
    peak_bytes: int = field(default=0, compare=False)  # peak of the memory that the program allocated, results included
    longest_side: int = field(default=0, compare=False)  # of the matrices that are multiplied, and of their products
    # Bytes moved and floating-point operations of each launch, in order.
    by_launch: tuple[tuple[int, int], ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        moved = f"{self.bytes_moved:,} bytes moved ({self.bytes_read:,} read, {self.bytes_written:,} written)"
        least = f"at least {self.minimum_bytes:,} by one kernel, at most {self.peak_bytes:,} alive"
        return f"{self.launches} launches, {moved}, {least}; {self.flops:,} FLOP"

    @property
    def bytes_moved(self) -> int:
        """Return the bytes read and written together."""
        return self.bytes_read + self.bytes_written


def cost(fn: Callable[..., object], inputs: Sequence[object]) -> Cost:
    """Run `fn(*inputs)` once and return what it cost.

        >>> x, bias = torch.zeros(2, 3), torch.zeros(3)
        >>> cost(lambda x, bias: torch.nn.functional.silu(x + bias), (x, bias)).launches
        2

    The inputs are real or fake tensors. Each operator with a kernel is one launch: it reads its distinct operands and
    writes its results. One that calls others in its place, as `masked_fill` does, is charged for these
    (`course_lib.graph.operator_calls`). An expanded operand is read once. Views and queries of shapes cost nothing. An
    operator of `course_lib.kernels` is one launch, regardless of its eager body; one made by `kernel_operator` of
    `course_lib.kernel_programs` is charged for each kernel that it launches. A gather (`embedding`, `index_select`) is
    charged for the rows that it reads. `torch.cond` costs what its costlier branch does; any other operator that calls
    functions is one launch.

    `flops` follow `torch.utils.flop_counter`. `minimum_bytes` is the traffic of one ideal kernel: inputs and
    parameters that are used are read once, and results, gradients left in `.grad` and changes in place are written
    once. `longest_side` is the largest number of rows or columns of a matrix that has a part in a product.
    `peak_bytes` is the peak of the memory that the program allocated. Memory that existed before and memory
    that kernels use internally do not count; tensors that autograd saves count.

    Raises `GraphError` if `inputs` is one tensor and not a sequence, and for a tensor that is sparse or nested.
    """
    require_several("cost", inputs)
    require_plain("cost", tuple(inputs), GraphError)
    counter = _Counter()
    # In inference mode, composite operators would not be decomposed and would count as one launch.
    with modes_kept(), torch.inference_mode(False), counter:
        result = fn(*inputs)
    return Cost(
        launches=len(counter.operators),
        bytes_read=counter.bytes_read,
        bytes_written=counter.bytes_written,
        operators=tuple(counter.operators),
        flops=counter.flops,
        minimum_bytes=counter.minimum.total_bytes(result),
        peak_bytes=counter.storages.peak_bytes,
        longest_side=counter.longest_side,
        by_launch=tuple(counter.by_launch),
    )


class _Counter(TorchDispatchMode):
    """Count each operator that reaches the dispatcher below autograd."""

    supports_higher_order_operators = True  # such as torch.cond, which call functions

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[str] = []
        self.bytes_read = 0
        self.bytes_written = 0
        self.flops = 0
        self.longest_side = 0
        self.by_launch: list[tuple[int, int]] = []
        self.storages = Storages()
        self.minimum = ByteBound(self.storages)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        calls = _launching(func, args, kwargs)  # found first, because the operator may change its operands
        with noted_launches() as launches:
            result = func(*args, **kwargs)
        self.storages.saw(tensors_in((args, kwargs)), tensors_in(result))
        if isinstance(func, torch._ops.HigherOrderOperator):
            self._charge_higher_order(func, args, kwargs, result)
        elif launches:
            self._charge_launches(launches)
            self.minimum.saw_read(tensors_in((args, kwargs)))
        elif not is_free(func):
            self._charge(func, args, kwargs, result, calls)
        return result

    def _charge_launches(self, launches: Sequence[Launch]) -> None:
        for launch in launches:
            self.operators.append(launch.name)
            self.bytes_read += launch.bytes_read
            self.bytes_written += launch.bytes_written
            self.by_launch.append((launch.bytes_read + launch.bytes_written, 0))

    def _charge_higher_order(self, func: Any, args: Any, kwargs: dict[str, object], result: object) -> None:
        """Charge the costlier branch of `torch.cond`, and any other operator that calls functions as one launch."""
        if func.name() == "cond":
            _, *branches, operands = args
            costs = [cost(branch, operands) for branch in branches]
            dearest = max(costs, key=lambda one: (one.bytes_moved, one.launches))
            self.operators += dearest.operators
            self.bytes_read += dearest.bytes_read
            self.bytes_written += dearest.bytes_written
            self.flops += dearest.flops
            self.by_launch += dearest.by_launch
            return
        read, written = distinct_bytes(tensors_in((args, kwargs))), distinct_bytes(tensors_in(result))
        self.operators.append(func.name())
        self.bytes_read += read
        self.bytes_written += written
        self.by_launch.append((read + written, 0))

    def _charge(
        self, func: Any, args: tuple[object, ...], kwargs: Mapping[str, object], result: object, calls: Sequence[Call]
    ) -> None:
        """Charge an operator, or the several calls that it makes in its place."""
        for call in calls if len(calls) > 1 else [Call(func, args, kwargs, result)]:
            self._charge_launch(call)
        read, mutated = _operands(func, args, kwargs)
        if func._schema.name in GATHERS:
            table, *read = read
            self.minimum.saw_rows_read(table, distinct_bytes(tensors_in(result)))
        self.minimum.saw_read(read)
        self.minimum.saw_written(mutated)

    def _charge_launch(self, call: Call) -> None:
        read, mutated = _operands(call.operator, call.args, call.kwargs)
        written = mutated or tensors_in(call.result)
        self.operators.append(call.operator._schema.name.removeprefix("aten::").replace("::", "."))
        flops = flops_of(call.operator, call.args, call.kwargs, call.result)
        if flops:
            sides = [size for each in tensors_in((call.args, call.kwargs, call.result)) for size in each.shape[-2:]]
            self.longest_side = max(self.longest_side, *sides)
        if call.operator._schema.name in GATHERS:
            read = [*read[1:], *written]  # as many bytes of the table as of the rows that are written
        bytes_read, bytes_written = distinct_bytes(read), distinct_bytes(written)
        self.flops += flops
        self.bytes_read += bytes_read
        self.bytes_written += bytes_written
        self.by_launch.append((bytes_read + bytes_written, flops))


def _launching(func: Any, args: tuple[object, ...], kwargs: Mapping[str, object]) -> tuple[Call, ...]:
    """Return the calls of other operators that launch kernels; of one with a formula of its operations, none."""
    if not isinstance(func, torch._ops.OpOverload) or (func.overloadpacket in _formulas() and func not in WRITTEN_OUT):
        return ()
    return calls_of(func, args, kwargs)


def _operands(
    func: Any, args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return the tensors that an operator reads, and those that it writes to in place."""
    read: list[torch.Tensor] = []
    mutated: list[torch.Tensor] = []
    for position, argument in enumerate(func._schema.arguments):
        value = args[position] if position < len(args) else kwargs.get(argument.name)
        writes = argument.alias_info is not None and argument.alias_info.is_write
        if writes:
            mutated += tensors_in(value)
        if not writes or not (argument.kwarg_only or func._schema.name in OVERWRITING):  # `out=` is not read either
            read += tensors_in(value)
    return read, mutated


Shape = Sequence[int]


def flops_of(operator: Any, args: tuple[object, ...], kwargs: Mapping[str, object], result: object) -> int:
    """Return the number of floating-point operations of one call, by the formulas of `torch.utils.flop_counter`.

    Matrix products, convolutions and attention count; a multiplication and an addition are one operation each. Other
    operators count as 0, as is usual, since they are limited by memory traffic and not by arithmetic.
    """
    formula = _formulas().get(operator._overloadpacket)
    return int(formula(*args, **kwargs, out_val=result)) if formula else 0


@functools.cache
def _formulas() -> Mapping[object, Callable[..., int]]:
    by_shape = {operator: flop_counter.shape_wrapper(formula) for operator, formula in attention_on_cpu().items()}
    registry, aten = flop_counter.flop_registry, torch.ops.aten
    in_place = {aten.addmm_: registry[aten.addmm], aten.baddbmm_: registry[aten.baddbmm]}
    return {**registry, **in_place, **by_shape}


def attention_on_cpu() -> Mapping[object, Callable[..., int]]:
    """Return formulas that take shapes, for the operators of attention on the CPU that torch 2.13 does not count."""
    aten = torch.ops.aten
    return {
        aten._scaled_dot_product_flash_attention_for_cpu: _attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    }


def _attention(query: Shape, key: Shape, value: Shape, *_: object, **__: object) -> int:
    return int(flop_counter.sdpa_flop_count(query, key, value))


def _attention_backward(grad: Shape, query: Shape, key: Shape, value: Shape, *_: object, **__: object) -> int:
    return int(flop_counter.sdpa_backward_flop_count(grad, query, key, value))


@dataclass(frozen=True)
class SavedForBackward:
    """Hold the memory that a program saves for its backward pass, beyond its inputs and parameters."""

    total_bytes: int
    tensors: tuple[str, ...]  # dtype and shape of each tensor that was kept, in the order of the forward pass


def saved_for_backward(fn: Callable[..., object], inputs: Sequence[object]) -> SavedForBackward:
    """Run `fn(*inputs)` once, forward, and return what autograd saved.

        >>> x, weight = torch.ones(2, 3), torch.ones(4, 3, requires_grad=True)
        >>> saved_for_backward(lambda x, w: torch.relu(torch.nn.functional.linear(x, w)), (x, weight))
        SavedForBackward(total_bytes=32, tensors=('float32[2, 4]',))

    Memory that existed before the program ran (inputs, parameters, constants) does not count. Each other storage counts
    once, in full, even if several views of it were saved. Inputs are real or fake tensors; nothing is saved unless some
    tensor requires gradients. Functions that use `torch.func.grad` are not supported: PyTorch raises RuntimeError.
    Tensors saved inside `torch.utils.checkpoint` are not seen. Raises `GraphError` if `inputs` is one tensor and not a
    sequence.
    """
    require_several("saved_for_backward", inputs)
    watcher = _Watcher()
    saved: dict[int, tuple[torch.UntypedStorage, str]] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if watcher.storages.is_made(tensor):
            # Kept alive until the end, so that no other storage gets the same number.
            saved.setdefault(storage_of(tensor), (tensor.untyped_storage(), describe_value(tensor)))
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
    with modes_kept(), torch.inference_mode(False), torch.enable_grad(), watcher, hooks:
        fn(*inputs)
    storages = saved.values()
    return SavedForBackward(sum(storage.nbytes() for storage, _ in storages), tuple(text for _, text in storages))


class _Watcher(TorchDispatchMode):
    """Track the memory that the program allocates."""

    def __init__(self) -> None:
        super().__init__()
        self.storages = Storages()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.storages.saw(tensors_in((args, kwargs)), tensors_in(result))
        return result
