"""Count the floating-point operations of a program by the shapes of its operators."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.graph.cost import attention_on_cpu


@dataclass(frozen=True)
class Flops:
    """Hold multiplications and additions, each counted as one operation."""

    total: int
    by_operator: Mapping[str, int] = field(default_factory=dict)


def count_flops(fn: Callable[..., object], *args: object) -> Flops:
    """Run `fn(*args)` once and return the floating-point operations of its matrix products, convolutions and attention.

        >>> count_flops(lambda a, b: torch.relu(a @ b), torch.zeros(2, 3), torch.zeros(3, 4)).total  # 2 · 2 · 3 · 4
        48

    Everything else counts as none, as is usual: it costs memory traffic, not arithmetic. The counting is that of
    `torch.utils.flop_counter`. In torch 2.13 that counts attention on the CPU as nothing, which is put right here,
    and neither does it know the one kernel that `torch.nn.TransformerEncoderLayer` uses in evaluation, which is
    switched off meanwhile. Fused operators of one's own count as nothing.
    """
    counter = FlopCounterMode(display=False, custom_mapping=dict(attention_on_cpu()))
    with torch.no_grad(), _layer_by_layer(), counter:
        fn(*args)
    counts = counter.get_flop_counts().get("Global", {})
    return Flops(counter.get_total_flops(), {str(operator): int(count) for operator, count in counts.items()})


@contextmanager
def _layer_by_layer() -> Iterator[None]:
    """Prevent `torch.nn.MultiheadAttention` and `TransformerEncoderLayer` from calling one fused kernel."""
    was_enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was_enabled)
