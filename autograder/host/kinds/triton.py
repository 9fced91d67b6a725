"""Answers that are Triton kernels: their text is checked, and a clean worker runs it in Triton's interpreter.

No Python of the student runs: the text leaves kernels and launchers no way out of the small language that
`autograder.host.artifacts.kernel_source` checks. So the recorded accesses are those of the kernel, and earn points.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from autograder.host import shared_inputs
from autograder.host.artifacts.kernel_source import KernelText, checked_kernels
from autograder.host.artifacts.kernel_writing import KernelRefusedError
from autograder.host.bandwidth import Bandwidth
from autograder.host.channel import MalformedAnswerError
from autograder.host.exercise import AnswerRefusedError, CheckFailedError
from autograder.host.kinds.callable import Case, placed
from autograder.host.session import Session
from autograder.protocol.requests.answers import Arguments
from autograder.protocol.requests.kernel_runs import (
    KernelLaunch,
    KernelsRun,
    LoadKernels,
    LoadTimedKernels,
    OperandTraffic,
    RunKernels,
    SharedElement,
    StrayAccess,
)
from autograder.protocol.requests.loads import LoadAnswer, Part

SAME = ("is_tuple", "launches", "widest", "live", "undefined", "uncompiled")


@dataclass(frozen=True)
class KernelRun:
    """What one call of a launcher gave and did; all counts are of elements under a true mask."""

    outputs: tuple[torch.Tensor, ...]
    is_tuple: bool
    inputs: tuple[OperandTraffic, ...]
    """The tensors of the call, in order, with the names of the launcher's parameters."""
    made: tuple[OperandTraffic, ...]
    """The tensors that the launcher made."""
    returned: tuple[OperandTraffic, ...]
    """The traffic of each output."""
    launches: tuple[KernelLaunch, ...]
    strays: tuple[StrayAccess, ...]
    conflicts: tuple[SharedElement, ...]
    widest: int
    """The elements of the largest block that was loaded or stored at once, those under a false mask included."""
    live: int
    """The most elements of all blocks that a program kept at once, pointers and masks included."""
    undefined: tuple[int, ...] = ()
    """The lines of masked loads without `other=` that left lanes undefined."""
    races: tuple[SharedElement, ...] = ()
    """Accesses whose values depend on the order of programs, and were spoilt."""
    uncompiled: int = 0
    """The launches that no compiler saw, as there is none on this machine."""

    @property
    def loads(self) -> int:
        """Return the elements that were loaded, of all tensors."""
        return sum(each.loads + each.atomics for each in (*self.inputs, *self.made))

    @property
    def stores(self) -> int:
        """Return the elements that were stored, of all tensors."""
        return sum(each.stores + each.atomics for each in (*self.inputs, *self.made))

    @property
    def accesses(self) -> int:
        """Return how often a program loaded or stored a block, or one element."""
        return sum(launch.accesses for launch in self.launches)


@dataclass
class TritonAnswer:
    """Run the launchers of an answer's text; the session of the student is never started."""

    student: Session
    clean: Session
    counted: dict[str, float] = field(default_factory=dict)
    _text: KernelText | None = None
    _loaded: bool = False

    @property
    def text(self) -> KernelText:
        """Return the checked text; raises `AnswerRefusedError` if it leaves the small language."""
        if self._text is None:
            load = self.student.load
            assert isinstance(load, LoadAnswer), "the judge gives the answer's parts"
            parts = {part.name: part.text for part in load.parts if part.name != "setup"}
            try:
                self._text = checked_kernels(parts, load.refused)
            except KernelRefusedError as error:
                raise AnswerRefusedError(str(error)) from None
        return self._text

    def run(self, case: Case, function: str = "", *, zero_at: tuple[int, ...] = ()) -> KernelRun:
        """Call the launcher `function`, by default the exercise's, once on the tensors and numbers of a case.

        Lanes that a load in one of the lines `zero_at` leaves undefined hold 0; those of other lines spoil a result.
        Raises `CheckFailedError` if there is no such launcher, and `AnswerFailedError` if it fails.
        """
        name = function or self._entry_point()
        if name not in self.text.launchers:
            raise CheckFailedError(f"The answer's cell defines no launcher `{name}`: a function without `@triton.jit`.")
        if not self._loaded:
            self.clean.reload(LoadKernels(self._parts()), ())
            self._loaded = True
        tensors: list[torch.Tensor] = []
        request = RunKernels(name, placed(case.args, case.kwargs, tensors), zero_at)
        reply = self.clean.call_with(request, [shared_inputs.to_raw(tensor) for tensor in tensors])
        outputs = tuple(shared_inputs.to_torch(raw) for raw in reply.tensors)
        return _read(reply.body, outputs, self._names(name, case))

    def timed(self, of: Bandwidth) -> LoadTimedKernels:
        """Return the request that has the checked text compiled and its launcher timed on this work."""
        return LoadTimedKernels(self._parts(), self._entry_point(), arguments_of(of))

    def _parts(self) -> tuple[Part, ...]:
        return tuple(Part(*each) for each in self.text.parts.items())

    def _entry_point(self) -> str:
        load = self.student.load
        assert isinstance(load, LoadAnswer), "the judge gives the answer's parts"
        return load.entry_point

    def _names(self, launcher: str, case: Case) -> list[str]:
        """Return the names of the tensors of a case, as the launcher calls them."""
        parameters = self.text.launchers[launcher]
        by_place = [
            parameters[i] if i < len(parameters) else f"argument {i}"
            for i, argument in enumerate(case.args)
            if isinstance(argument, torch.Tensor)
        ]
        return [*by_place, *(name for name, argument in case.kwargs.items() if isinstance(argument, torch.Tensor))]


def arguments_of(of: Bandwidth) -> Arguments:
    """Return the arguments of a timed call: its tensors, then its numbers."""
    return Arguments((*({"tensor": i} for i in range(len(of.inputs))), *of.numbers), {})


def _read(body: KernelsRun, outputs: Sequence[torch.Tensor], names: Sequence[str]) -> KernelRun:
    if len(outputs) != len(body.outputs) or not all(i < len(body.operands) for i in body.outputs):
        raise MalformedAnswerError
    if len(body.operands) < len(names):
        raise MalformedAnswerError
    shown = {
        body.operands[i].name: "the output" if len(outputs) == 1 else f"output {n}" for n, i in enumerate(body.outputs)
    }
    # an input that is returned too keeps the name of its parameter
    shown |= {each.name: name for each, name in zip(body.operands, names, strict=False)}

    def renamed(each: OperandTraffic) -> OperandTraffic:
        return OperandTraffic(**{**vars(each), "name": shown.get(each.name, each.name)})

    def clashes(found: Sequence[SharedElement]) -> tuple[SharedElement, ...]:
        return tuple(SharedElement(**{**vars(c), "operand": shown.get(c.operand, c.operand)}) for c in found)

    operands = [renamed(each) for each in body.operands]
    same = {name: getattr(body, name) for name in SAME}
    return KernelRun(
        outputs=tuple(outputs),
        inputs=tuple(operands[: len(names)]),
        made=tuple(operands[len(names) :]),
        returned=tuple(operands[i] for i in body.outputs),
        strays=tuple(StrayAccess(**{**vars(s), "nearest": shown.get(s.nearest, s.nearest)}) for s in body.strays),
        conflicts=clashes(body.conflicts),
        races=clashes(body.races),
        **same,
    )
