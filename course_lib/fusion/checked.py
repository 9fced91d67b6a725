"""Fuse where shapes are not known yet: a check when the program runs, and the operators as written if it fails.

What a pass must know of its operands (their rank, last dimension, dtype, device) stands in the metadata of a graph,
or it does not, or a size is a symbol there. Then the matched operators become one `CheckedFusion`. When it runs, its
operands have shapes, so the very same pass looks at the very same operators once more, with nothing left to guess. What
it finds out holds for all operands of these shapes and dtypes, and is looked up from then on.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from course_lib.graph.shapes import describe_value, propagate_shapes

MAX_DECISIONS = 64  # of one fusion: a program whose shapes never repeat must not fill the memory
Signature = tuple[object, ...]


class Refusal(Protocol):
    """Why a pass left something alone."""

    @property
    def reason(self) -> str:
        """One sentence."""


class Outcome(Protocol):
    """What a pass gives back, as far as a check reads it: a `FusionResult` is one."""

    @property
    def graph_module(self) -> fx.GraphModule:
        """The transformed copy."""

    @property
    def num_matches(self) -> int:
        """How many changes were made."""

    @property
    def rejected(self) -> Sequence[Refusal]:
        """What was left alone."""


class Decider(Protocol):
    """A pass that leaves alone what it knows too little of."""

    @property
    def name(self) -> str:
        """What the pass is called."""

    def call(self, graph_module: fx.GraphModule) -> Outcome:
        """Return the transformed copy of a graph."""


class CheckedFusion(nn.Module):
    """Runs `written`, a graph of a few operators, fused where the pass allows it for operands like these.

    It has no parameters: those stay where the program has them, and are given with each call. While
    `torch.compile` or `torch.export` looks, it runs as written.
    """

    def __init__(self, written: fx.GraphModule, fusion: Decider, names: Sequence[str], reason: str) -> None:
        """Take the operators as they are, the pass, the nodes that they were, and why they are not fused for good."""
        super().__init__()
        self.written = written
        self.fusion = fusion
        self.names = tuple(names)
        self.reason = reason
        self._decisions: dict[Signature, tuple[fx.GraphModule | None, str]] = {}

    def forward(self, *operands: Any) -> Any:
        """Return what the operators return, fused or not."""
        if torch.compiler.is_compiling():
            return self.written(*operands)
        signature = self._signature(operands)
        if signature is None:
            return self.written(*operands)
        if signature not in self._decisions:
            self._decide(signature)
        fused, _ = self._decisions[signature]
        return (self.written if fused is None else fused)(*operands)

    @property
    def decisions(self) -> Mapping[str, str]:
        """What was found out so far: operands, and "fused" or why not."""
        return {_shown(signature): said for signature, (_, said) in self._decisions.items()}

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        fused = sum(graph is not None for graph, _ in self._decisions.values())
        so_far = f"so far fused for {fused} kinds of operands, as written for {len(self._decisions) - fused}"
        return f"{self.fusion.name} of {', '.join(self.names)}; {so_far}"

    def _signature(self, operands: Sequence[object]) -> Signature | None:
        """Return all that a pass may ask about operands; None where that is more than numbers."""
        described = [_described(value) for value in operands]
        if any(one is None for one in described):
            return None
        return (*described, *(module.training for module in self.written.modules()))

    def _decide(self, signature: Signature) -> None:
        """Find out in a thread of its own, where no mode of the caller is switched on: none counts, none draws."""
        thread = threading.Thread(target=self._ask_the_pass, args=(signature,))
        thread.start()
        thread.join()

    def _ask_the_pass(self, signature: Signature) -> None:
        if len(self._decisions) >= MAX_DECISIONS:
            self._decisions.clear()
        try:
            graph = propagate_shapes(fx.GraphModule(self.written, self.written.graph), _stand_ins(signature))
            result = self.fusion.call(graph)
        except Exception as error:  # the operators fail on such operands: let them, where the caller sees it
            self._decisions[signature] = None, f"not fused: {error}"
            return
        said = "; ".join(f"not fused: {one.reason}" for one in result.rejected) or "not fused"
        fused = result.graph_module if result.num_matches else None
        self._decisions[signature] = fused, "fused" if fused is not None else said

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies and files hold: all but the decisions, which are made anew."""
        return {**self.__dict__, "_decisions": {}}


def _described(value: object) -> tuple[object, ...] | None:
    if isinstance(value, torch.Tensor):
        sizes = (*value.shape, *value.stride())
        plain = all(type(size) is int for size in sizes) and value.layout == torch.strided
        return (tuple(value.shape), value.stride(), value.dtype, value.device) if plain else None
    return (type(value), value) if isinstance(value, (bool, int, float)) or value is None else None


def _stand_ins(signature: Signature) -> list[object]:
    """Return operands without data, as the signature describes them."""
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
