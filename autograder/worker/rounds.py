"""Rounds under the host's clock: the loaded function, called on several problems in one go.

The host lends the memory for the outputs first. Where student code is loaded, a round's inputs come with the signal to
go, so that nothing can be begun before it, and its outputs lie in the host's memory before the reply: the host looks
at places of them, drawn by lot, before it stops the clock. A process that holds only a graph which the host made needs
neither, so there the clock sees nothing but the work.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker import shared_memory
from autograder.worker.devices import device_tensors
from autograder.worker.tensors import NotATensorError, to_torch

Reply = tuple[dict[str, Any], list[RawTensor]]

# mallopt(3): -4 is M_MMAP_MAX, -1 M_TRIM_THRESHOLD, -2 M_TOP_PAD
KEEP_FREED_MEMORY = ((-4, 0), (-1, 2**31 - 1), (-2, 64 << 20))


def with_rounds(function: Callable[..., Any], answer: Callable[[Message], Reply]) -> Callable[[Message], Reply]:
    """Return ``answer``, which from now on also takes the messages of `Rounds`."""
    rounds = Rounds(function)

    def serve(message: Message) -> Reply:
        do = message.body.get("do")
        if do is None:
            return answer(message)
        return {"outputs": rounds.lend, "inputs": rounds.hold, "round": rounds.run, "fetch": rounds.fetch}[do](message)

    return serve


@dataclass
class Rounds:
    """The function, the host's memory for outputs, and what is held from one message to the next.

    ``{"do": "outputs", "each": n}`` lends memory, ``n`` tensors a problem. ``{"do": "inputs"}`` brings the inputs of a
    round beforehand, where nothing in this process could begin early. ``{"do": "round", "calls": [...]}`` runs:
    ``calls`` lists the numbers of the input tensors of each problem; with ``deliver`` the results are copied to the
    host's memory in the round itself, otherwise ``{"do": "fetch"}`` does so later. ``into`` says that the function
    takes the outputs after its inputs and writes there. A round with ``skip`` calls nothing and still delivers:
    so the host learns what a round costs by itself.
    """

    function: Callable[..., Any]
    outputs: list[list[torch.Tensor]] = field(default_factory=list)
    stand_ins: list[Any] = field(default_factory=list)
    inputs: list[torch.Tensor] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)

    def lend(self, message: Message) -> Reply:
        """Keep the host's memory for outputs, in portions of one problem."""
        _keep_freed_memory()
        each = message.body["each"]
        if "block" in message.body:
            tensors, self.inputs = device_tensors(message.body["block"], shared_memory.of_device.pop())
            if isinstance(self.function, torch.nn.Module):
                self.function.to(tensors[0].device)
        else:
            tensors = [to_torch(raw) for raw in message.tensors]
        self.outputs = [tensors[i : i + each] for i in range(0, len(tensors), each)]
        self.stand_ins = [[torch.zeros_like(out) for out in outs] for outs in self.outputs]
        return {"lent": len(tensors)}, []

    def hold(self, message: Message) -> Reply:
        """Keep the inputs of the next round."""
        if message.tensors:  # on a GPU they lie where they always do
            self.inputs = [to_torch(raw) for raw in message.tensors]
        return {"held": len(self.inputs)}, []

    def run(self, message: Message) -> Reply:
        """Call the function on every problem of the round."""
        body = message.body
        inputs = [to_torch(raw) for raw in message.tensors] or self.inputs
        problems = [[inputs[i] for i in numbers] for numbers in body["calls"]]
        if body["skip"]:
            self.results = [] if body["into"] else self.stand_ins
        elif body["into"]:
            for problem, outs in zip(problems, self.outputs, strict=True):
                self.function(*problem, *outs)
        else:
            self.results = [self.function(*problem) for problem in problems]
        if body["deliver"]:
            self._deliver()
        if any(t.is_cuda for t in self.inputs):
            torch.cuda.synchronize()
        return {"done": len(problems)}, []

    def fetch(self, message: Message) -> Reply:
        """Copy the results of the last round to the host's memory."""
        self._deliver()
        return {}, []

    def _deliver(self) -> None:
        results, self.results = self.results, []
        for outs, result in zip(self.outputs, results, strict=False):  # none, where they were written into
            _fill(outs, list(result) if isinstance(result, tuple | list) else [result])


def _keep_freed_memory() -> None:
    """Let the C library keep large blocks that are freed, as CUDA's caching allocator does.

    Otherwise it returns them to the system or not, as it happened to go before, and new pages cost more than a fused
    operator: the same program then takes 0.7 ms in one process and 3 ms in the next.
    """
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc: times scatter more
        mallopt = ctypes.CDLL(None).mallopt
        for name, value in KEEP_FREED_MEMORY:
            mallopt(name, value)


def _fill(outs: Sequence[torch.Tensor], results: Sequence[Any]) -> None:
    """Copy what a call returned to where the host reads."""
    if len(results) != len(outs):
        raise NotATensorError(f"The function returned {len(results)} outputs, where {len(outs)} are expected.")
    for out, result in zip(outs, results, strict=True):
        if type(result) is not torch.Tensor or result.shape != out.shape or result.dtype != out.dtype:
            form = f"{tuple(out.shape)} {str(out.dtype).removeprefix('torch.')}"
            raise NotATensorError(f"An output is not a torch.Tensor of {form}, as it is in the other calls.")
        out.copy_(result.detach())
