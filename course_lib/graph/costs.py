"""What a program costs in kernels and bytes, counted instead of timed.

Counts are exact and the same on every machine. They say what the operators of eager PyTorch would do one by one:
each launches one kernel, reads its operands from memory and writes its results.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Operators that only say something about a tensor, or give memory that nobody wrote to: no kernel.
FREE = frozenset(
    """
    aten::_unsafe_view aten::_reshape_alias aten::lift_fresh aten::lift_fresh_copy aten::detach aten::is_same_size
    aten::sym_size aten::sym_stride aten::sym_numel aten::sym_storage_offset aten::empty aten::empty_like
    aten::empty_strided aten::new_empty aten::new_empty_strided aten::_assert_async aten::_version aten::set_
    aten::resize_ prim::device
    """.split()  # noqa: SIM905  # a list of so many names reads best as a block
)
# Operators in place that overwrite their first operand without reading it.
OVERWRITING = frozenset(
    "aten::copy_ aten::fill_ aten::zero_ aten::normal_ aten::uniform_ aten::bernoulli_ aten::random_".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Cost:
    """Kernels launched and bytes moved by one run of a program."""

    launches: int
    bytes_read: int
    bytes_written: int
    operators: tuple[str, ...] = field(default=(), compare=False)  # one name a launch, in order

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written together."""
        return self.bytes_read + self.bytes_written


def cost(fn: Callable[..., object], inputs: Sequence[object]) -> Cost:
    """Run `fn(*inputs)` once and return what it cost.

        >>> x, bias = torch.zeros(2, 3), torch.zeros(3)
        >>> cost(lambda x, bias: torch.nn.functional.silu(x + bias), (x, bias)).launches
        2

    The inputs are real or fake tensors. Each operator that PyTorch dispatches is one launch: it reads its distinct
    operands, an expanded one only once, and writes its results. Views and questions about shapes cost nothing. An
    operator of `course_lib.kernels` is one launch, whatever its eager body does. A gather (`embedding`,
    `index_select`) is charged for the rows that it reads.
    """
    counter = _Counter()
    # In inference mode, operators that are made of others would arrive whole, and be counted as one launch.
    with torch.inference_mode(False), counter:
        fn(*inputs)
    return Cost(len(counter.operators), counter.bytes_read, counter.bytes_written, tuple(counter.operators))


class _Counter(TorchDispatchMode):
    """Sees each operator below autograd, just before it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[str] = []
        self.bytes_read = 0
        self.bytes_written = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not _is_free(func):
            self._charge(func, args, kwargs, result)
        return result

    def _charge(self, func: Any, args: Sequence[object], kwargs: dict[str, object], result: object) -> None:
        read, mutated = _operands(func, args, kwargs)
        written = mutated or _tensors(result)
        self.operators.append(func._schema.name.removeprefix("aten::").replace("::", "."))
        self.bytes_written += _distinct_bytes(written)
        if func._schema.name in ("aten::embedding", "aten::index_select"):
            self.bytes_read += _distinct_bytes(read[1:]) + _distinct_bytes(written)
        else:
            self.bytes_read += _distinct_bytes(read)


def _is_free(func: Any) -> bool:
    returns = func._schema.returns
    is_view = bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
    return is_view or func._schema.name in FREE


def _operands(
    func: Any, args: Sequence[object], kwargs: dict[str, object]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return the tensors that an operator reads, and those that it writes to in place."""
    read: list[torch.Tensor] = []
    mutated: list[torch.Tensor] = []
    for position, argument in enumerate(func._schema.arguments):
        value = args[position] if position < len(args) else kwargs.get(argument.name)
        writes = argument.alias_info is not None and argument.alias_info.is_write
        if writes:
            mutated += _tensors(value)
        if not writes or not (argument.kwarg_only or func._schema.name in OVERWRITING):  # `out=` is not read either
            read += _tensors(value)
    return read, mutated


def _tensors(value: object) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _distinct_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Return the bytes of memory behind tensors; what appears twice, or is expanded, lies in memory once."""
    regions: dict[object, int] = {}
    for tensor in tensors:
        # In no order, so that a tensor and its transpose are the same region.
        real = sorted((size, stride) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0)
        elements = 0 if tensor.numel() == 0 else torch.Size(size for size, _ in real).numel()
        key = (tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(real), tensor.dtype)
        regions[key] = elements * tensor.element_size()
    return sum(regions.values())
