"""Ready-made checks for answers that are Triton kernels.

Each check also needs right values, or right accesses to memory in number, so a kernel that does nothing passes none.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from autograder.host import comparison
from autograder.host.checks.undefined_lanes import said_of_undefined, undefined_loads
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import Case, Reference, as_tuple, promoted
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.kinds.triton import KernelRun, TritonAnswer
from autograder.protocol.requests.kernel_runs import OperandTraffic, SharedElement, StrayAccess

FAR = 0.3  # of the sum of all magnitudes
FEWEST = 3  # elements of an access on average, where rows are long; a block of one row has 20 or more in most cases
NO_COMPILER = "launches not compiled, as Triton has no compiler on this machine"
NEEDED = "Where such a lane is an element that is needed, the mask is too narrow."
NEARER = 0.1  # a misconception explains outputs whose distance from it is this part of that from the reference
Cases = Callable[[Draw], Iterable[Case]]
Check = Callable[[TritonAnswer, Draw], None]
Demand = Callable[[KernelRun, Case], None]


def holds(cases: Cases, reference: Reference, names: Sequence[str], *demands: Demand, function: str = "") -> Check:
    """Return a check that each demand holds for the run of each case; outputs of another number or shape fail first.

    Where outputs depend on lanes that a masked load left undefined, a failure names the lines of these loads. Where
    they depend on the order of programs, it names two programs and the element that they share.
    """

    def run(answer: TritonAnswer, draw: Draw) -> None:
        for case in cases(draw):
            done = answer.run(case, function)
            _require_form(done, case, reference, names)
            _require_blocks(done, case)
            try:
                for demand in demands:
                    demand(done, case)
            except CheckFailedError as error:
                lines, defined = ([], done) if error.share else undefined_loads(answer, done, case, function)
                if not lines and done.races and not error.share:
                    raise CheckFailedError(_said_of_clash(done.races[0], case)) from None
                if not lines:
                    raise
                needed = f" {NEEDED}" if _fails(demands, defined, case) else ""
                raise CheckFailedError(f"{said_of_undefined(lines, case)}{needed}") from None
            answer.counted |= {"kernels launched": len(done.launches), "elements loaded": done.loads}
            answer.counted |= {"elements stored": done.stores}
            if done.uncompiled:
                answer.counted |= {NO_COMPILER: done.uncompiled}

    return run


def _fails(demands: Iterable[Demand], run: KernelRun, case: Case) -> bool:
    try:
        for demand in demands:
            demand(run, case)
    except CheckFailedError:
        return True
    return False


def right_values(
    reference: Reference,
    names: Sequence[str],
    misconceptions: Sequence[Misconception] = (),
    *,
    only: Sequence[int] | None = None,
) -> Demand:
    """Demand outputs that equal the reference by the error rule; with `only`, those with these numbers.

    A misconception whose formula gives the same outputs explains the failure.
    """

    def demand(run: KernelRun, case: Case) -> None:
        exact = promoted(case)
        truths = as_tuple(reference(*exact.args, **exact.kwargs))
        eagers = as_tuple(reference(*case.args, **case.kwargs))
        for i in range(len(names)) if only is None else only:
            traffic, name = run.returned[i], names[i]
            if traffic.stored < traffic.elements:
                raise CheckFailedError(_unwritten(traffic, name, case))
            try:
                comparison.require_close(run.outputs[i], truths[i], eagers[i], name, case.where)
            except CheckFailedError as error:
                if says := _explained(run, truths, case, reference, misconceptions):
                    raise CheckFailedError(says) from None
                raise error from None

    return demand


def inside(run: KernelRun, case: Case) -> None:
    """Demand that no load or store leaves the tensors, and that no input is written."""
    if run.strays:
        raise CheckFailedError(said_of_stray(run.strays[0], run, case))
    inputs_kept(run, case)


def inputs_kept(run: KernelRun, case: Case) -> None:
    """Demand that no input is written."""
    for each in run.inputs:
        if each.stores or each.atomics:
            raise CheckFailedError(
                f"{each.stores + each.atomics} elements of the input {each.name} were written{case.where}. "
                "A kernel writes into tensors that the launcher made."
            )


def apart(run: KernelRun, case: Case) -> None:
    """Demand that programs of one launch share no element that one of them writes, and use no atomic operation."""
    for each in (*run.inputs, *run.made):
        if each.atomics:
            raise CheckFailedError(
                f"{each.atomics:,} elements of {each.name} were changed by `tl.atomic_add` or another atomic operation"
                f"{case.where}: floats are then added in another order in each run, and the result changes with it. "
                "Write partial sums, one row a program, and add the rows in a second launch."
            )
    for clash in run.conflicts:
        raise CheckFailedError(_said_of_clash(clash, case))


def shared_out(programs: int) -> Demand:
    """Demand that the busiest programs of all launches together load and store at most this part of the elements.

    What a program loads again counts once, so none looks busy by it.
    """

    def demand(run: KernelRun, case: Case) -> None:
        busiest, elements = (sum(getattr(launch, of) for launch in run.launches) for of in ("busiest", "elements"))
        if busiest * programs > elements:
            raise CheckFailedError(
                f"One program loads and stores {busiest:,} of the {elements:,} different elements{case.where}; "
                f"expected at least {programs} programs that share them. A program runs on one part of the GPU: give "
                "each elements of its own."
            )

    return demand


def narrow(lanes: int, *, live: int) -> Demand:
    """Demand blocks of at most `lanes` elements, and at most `live` in all blocks at once, as registers are few."""

    def demand(run: KernelRun, case: Case) -> None:
        if run.widest > lanes:
            raise CheckFailedError(
                f"A block of {run.widest:,} elements was loaded or stored{case.where}; at most {lanes} at a time are "
                "allowed here. Go over a row in several blocks."
            )
        if run.live > live:
            raise CheckFailedError(
                f"A program keeps {run.live:,} elements in blocks at once{case.where}; registers hold {live:,} here. "
                "A row may be longer than that: keep what you know of it so far, and load a block again."
            )

    return demand


def whole_blocks(run: KernelRun, case: Case) -> None:
    """Demand that each input and output is gone over in blocks of one width, of which the last one has a mask."""
    elements = run.loads + run.stores
    tensors = len(run.inputs) + len(run.returned)
    most = -(-elements // max(1, run.widest)) + tensors
    if run.accesses > most:
        raise CheckFailedError(
            f"The kernels load and store {run.accesses} times{case.where}, and the largest block has {run.widest} "
            f"lanes, by which {most} times are enough. Let all programs do the same with a block of one width: the "
            "last block, which is not full, has a mask."
        )


def loads_at_most(limit: Callable[[Case], int], why: str, *, nothing: float = 2.0) -> Demand:
    """Demand that all launches together load at most `limit(case)` elements; `nothing` times as many earn nothing."""

    def demand(run: KernelRun, case: Case) -> None:
        _require_few("loads", run.loads, limit(case), why, case, nothing)

    return demand


def stores_at_most(limit: Callable[[Case], int], why: str) -> Demand:
    """Demand that all launches together store at most `limit(case)` elements; twice as many earn nothing."""

    def demand(run: KernelRun, case: Case) -> None:
        _require_few("stores", run.stores, limit(case), why, case)

    return demand


def resembles(reference: Reference, names: Sequence[str]) -> Demand:
    """Demand outputs near the reference's, for checks of accesses: a slip passes, another program fails."""

    def demand(run: KernelRun, case: Case) -> None:
        exact = promoted(case)
        truths = as_tuple(reference(*exact.args, **exact.kwargs))
        for output, truth, name in zip(run.outputs, truths, names, strict=True):
            scale = truth.abs().nan_to_num(posinf=0)
            error = (output.double() - truth).abs().nan_to_num(nan=torch.inf).minimum(scale)
            if float(error.sum()) > FAR * float(scale.sum()):
                raise CheckFailedError(
                    f"{name} has nothing of the reference{case.where}, so its accesses to memory earn no points. "
                    "Mend the values first."
                )

    return demand


def said_of_stray(stray: StrayAccess, run: KernelRun, case: Case) -> str:
    """Return the sentence about an access outside of every tensor."""
    did = {"load": "reads", "store": "writes", "atomic": "changes"}[stray.action]
    where = f"Line {stray.line} of the answer {did} {stray.count} elements outside of every tensor{case.where}"
    if not stray.nearest:
        return f"{where}, before all of them. Look at the pointer and the mask."
    sizes = {each.name: each.elements for each in (*run.inputs, *run.made)}
    return (
        f"{where}; the first lies {stray.beyond} elements after the first one of {stray.nearest}, which has "
        f"{sizes[stray.nearest]}. Mask what lies outside, and multiply each index by its own stride."
    )


def _said_of_clash(clash: SharedElement, case: Case) -> str:
    did = {"load": "reads it", "store": "writes it", "atomic": "changes it"}[clash.action]
    return (
        f"Program {clash.programs[0]} uses element {clash.element} of {clash.operand}, and program {clash.programs[1]} "
        f"of the same launch {did}{case.where}. Programs run in any order on a GPU, and at the same time: let each "
        "write elements of its own, and combine them in another launch."
    )


def _unwritten(traffic: OperandTraffic, name: str, case: Case) -> str:
    return (
        f"{traffic.elements - traffic.stored} of {traffic.elements} elements of {name} were never stored{case.where}. "
        "The grid must have a program for each block, also for the last one, which is not full."
    )


def _require_few(what: str, found: int, limit: int, why: str, case: Case, nothing: float = 2.0) -> None:
    if found > limit:
        share = max(0.0, (nothing - found / max(1, limit)) / (nothing - 1))
        raise CheckFailedError(
            f"The kernels have {found:,} {what} of elements{case.where}, where {limit:,} are enough: {why}", share=share
        )


def _require_blocks(run: KernelRun, case: Case) -> None:
    """Demand blocks: a program that goes over single elements uses one lane of many, and needs no mask."""
    *rows, columns = case.args[0].shape
    fewest = min(FEWEST, columns / 8, *rows)
    elements = sum(each.elements for each in (*run.inputs, *run.returned))
    if run.accesses * fewest > elements:
        raise CheckFailedError(
            f"The kernels load and store {run.accesses:,} times{case.where}, for {elements:,} elements of the inputs "
            "and outputs: one or two at a time. A program works on blocks: load, compute and store `tl.arange` of "
            "elements at once, and mask those outside."
        )


def _require_form(run: KernelRun, case: Case, reference: Reference, names: Sequence[str]) -> None:
    expected = as_tuple(reference(*case.args, **case.kwargs))
    if len(run.outputs) != len(expected):
        raise CheckFailedError(
            f"The launcher returned {len(run.outputs)} tensors; expected {len(expected)}: {', '.join(names)}."
        )
    for output, wanted, name in zip(run.outputs, expected, names, strict=True):
        comparison.require_form(output, wanted, name)


def _explained(
    run: KernelRun,
    truths: Sequence[torch.Tensor],
    case: Case,
    reference: Reference,
    misconceptions: Sequence[Misconception],
) -> str:
    """Return what the first misconception says that gives these outputs, and gives them far nearer than the truth."""
    exact = promoted(case)
    known = ((each.formula(*exact.args, **exact.kwargs), each.says) for each in misconceptions)
    for outputs, says in itertools.chain(known, _by_rows(run, exact, reference)):
        found = as_tuple(outputs)
        alike = len(found) == len(run.outputs) and all(
            o.shape == f.shape and torch.allclose(o.double(), f.double(), rtol=1e-3, atol=1e-3, equal_nan=True)
            for o, f in zip(run.outputs, found, strict=True)
        )
        if alike and _distance(run.outputs, found) < NEARER * _distance(run.outputs, truths):
            return says
    return ""


def _by_rows(run: KernelRun, case: Case, reference: Reference) -> Iterator[tuple[Any, str]]:
    """Yield what the reference gives where the strides of an input are ignored, and the sentence about it."""
    tensors = [number for number, arg in enumerate(case.args) if isinstance(arg, torch.Tensor)]
    for number, traffic in zip(tensors, run.inputs, strict=False):
        arg = case.args[number]
        if arg.is_contiguous() or arg.untyped_storage().nbytes() != arg.numel() * arg.element_size():
            continue
        read = arg.as_strided(arg.shape, torch.empty(arg.shape, device="meta").stride(), 0)
        args = (*case.args[:number], read, *case.args[number + 1 :])
        yield (
            reference(*args, **case.kwargs),
            f"{traffic.name} was read as if its rows lay one after the other{case.where}: multiply each index by the "
            "stride of its own dimension.",
        )


def _distance(outputs: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> float:
    total = 0.0
    for output, other in zip(outputs, others, strict=True):
        apart = (output.double() - other.double()).abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
        total += float(torch.where(output.isnan() & other.isnan(), 0.0, apart).sum())
    return total
