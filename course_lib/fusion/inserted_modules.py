"""Modules without parameters that passes insert into a graph: constants, fused operators with dropout, checked fusions.

Those with dropout follow `train()` and `eval()` as `nn.Dropout` does.

A pass reads rank, last dimension, dtype and device of its operands in the metadata of the graph. If they are missing,
or a size is a symbol, the matched operators become one `CheckedFusion`. When it runs, its operands have shapes, so the
pass checks the same operators again. The decision holds for all operands of these shapes and dtypes.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

import course_lib.kernels  # noqa: F401  # registers the operator
from course_lib.graph.shapes import describe_value, propagate_shapes


class Constant(nn.Module):
    """Return the same tensor in each run; it is not a buffer, so `to()` does not change it and no checkpoint holds it.

    The calls that it replaces did the same: `torch.arange(8)` returns int64 on the CPU, whatever the device of the
    model.
    """

    def __init__(self, value: torch.Tensor) -> None:
        super().__init__()
        self._value = (value,)  # in a tuple, because nn.Module would make a tensor an attribute that torch.fx registers

    def forward(self) -> torch.Tensor:
        """Return the tensor itself, which no caller may change."""
        return self._value[0]

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return f"{str(self._value[0].dtype).removeprefix('torch.')}{list(self._value[0].shape)}"


class BiasDropoutResidualLayerNorm(nn.Module):
    """Call `course_lib::bias_dropout_residual_layer_norm` with the training flag of the module.

    It has no parameters: they stay in the program and are passed with each call.
    """

    def __init__(self, p: float, eps: float) -> None:
        super().__init__()
        self.p = p
        self.eps = eps

    def forward(
        self,
        x: torch.Tensor,
        bias: torch.Tensor,
        residual: torch.Tensor,
        weight: torch.Tensor,
        layer_norm_bias: torch.Tensor,
    ) -> torch.Tensor:
        """Return `layer_norm(residual + dropout(x + bias))`, of the shape of `x`."""
        result: torch.Tensor = torch.ops.course_lib.bias_dropout_residual_layer_norm(
            x, bias, residual, weight, layer_norm_bias, self.p, self.training, self.eps
        )
        return result

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return f"p={self.p}, eps={self.eps}"


MAX_DECISIONS = 64  # of one fusion: a program whose shapes never repeat must not fill the memory
Signature = tuple[object, ...]
Decision = tuple[fx.GraphModule | None, str]
"""The fused graph, or None if the operators stay as written, and the decision as text."""


class CheckedFusion(nn.Module):
    """Run `written`, a graph of a few operators, or its fused form if the pass allows that for the given operands.

    It has no parameters: they stay in the program and are passed with each call. `torch.compile` and `torch.export` use
    the operators as written.
    """

    def __init__(
        self,
        written: fx.GraphModule,
        decide: Callable[[fx.GraphModule], Decision],
        *,
        pass_name: str,
        names: Sequence[str],
        reason: str,
    ) -> None:
        """Take the operators as written, the function that decides for a graph with shapes, and texts for the reader.

        `names` are the names of the operators' nodes. `reason` says why the pass could not decide before the program
        runs.
        """
        super().__init__()
        self.written = written
        self.decide = decide
        self.pass_name = pass_name
        self.names = tuple(names)
        self.reason = reason
        self._decisions: dict[Signature, Decision] = {}

    def forward(self, *operands: Any) -> Any:
        """Return what the operators return, fused or not."""
        if torch.compiler.is_compiling():
            return self.written(*operands)
        signature = self._signature(operands)
        if signature is None:
            return self.written(*operands)
        fused, _ = self._decisions.get(signature) or self._decide(signature)
        return (self.written if fused is None else fused)(*operands)

    @property
    def decisions(self) -> Mapping[str, str]:
        """Return the decisions so far: a description of the operands, and "fused" or the reason against it."""
        return {_shown(signature): said for signature, (_, said) in list(self._decisions.items())}

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        fused = sum(graph is not None for graph, _ in self._decisions.values())
        so_far = f"so far fused for {fused} kinds of operands, as written for {len(self._decisions) - fused}"
        return f"{self.pass_name} of {', '.join(self.names)}; {so_far}"

    def _signature(self, operands: Sequence[object]) -> Signature | None:
        """Return the properties that a pass may read; None if an operand is no number and no tensor of known size."""
        described = [_described(value) for value in operands]
        if any(one is None for one in described):
            return None
        return (*described, *(module.training for module in self.written.modules()))

    def _decide(self, signature: Signature) -> Decision:
        """Run the pass in a new thread, where no mode of the caller counts operators or draws random numbers.

        Several threads may decide at once; they come to the same decision.
        """
        found: list[Decision] = []
        thread = threading.Thread(target=lambda: found.append(self._ask_the_pass(signature)))
        thread.start()
        thread.join()
        if len(self._decisions) >= MAX_DECISIONS:
            self._decisions.clear()
        self._decisions[signature] = found[0]
        return found[0]

    def _ask_the_pass(self, signature: Signature) -> Decision:
        try:
            graph = propagate_shapes(fx.GraphModule(self.written, self.written.graph), _stand_ins(signature))
            return self.decide(graph)
        except Exception as error:  # the operators fail on such operands; run them as written, to raise the error
            return None, f"not fused: {error}"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles: everything but the decisions, which a copy makes again."""
        return {**self.__dict__, "_decisions": {}}


def _described(value: object) -> tuple[object, ...] | None:
    if isinstance(value, torch.Tensor):
        sizes = (*value.shape, *value.stride())
        plain = all(type(size) is int for size in sizes) and value.layout == torch.strided
        return (tuple(value.shape), value.stride(), value.dtype, value.device) if plain else None
    return (type(value), value) if isinstance(value, (bool, int, float)) or value is None else None


def _stand_ins(signature: Signature) -> list[object]:
    """Return fake tensors and plain values that match the signature."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    found: list[object] = []
    for one in signature:
        if isinstance(one, tuple) and len(one) == 4:
            shape, stride, dtype, device = one
            found.append(FakeTensor(mode, torch.empty_strided(shape, stride, dtype=dtype, device="meta"), device))
        elif isinstance(one, tuple):
            found.append(one[1])
    return found


def _shown(signature: Signature) -> str:
    return ", ".join(describe_value(value) for value in _stand_ins(signature))
