"""Run hard programs through `fuse` and through `torch.compile` with Inductor, and count exact results.

    python -m benchmarks.inductor_comparison [--without-inductor] [--part NAME] [--quick] [--show]

Each program of `benchmarks/fusion_trials/adversarial_programs.py` runs three times from the same state: as PyTorch runs
it, fused by the default passes, and compiled by Inductor with PyTorch's own random numbers. Each makes two calls in a
row with different inputs. Outputs, inputs and state after each call, the random state, printed text, notes of helpers,
and the gradients of inputs and parameters have to be the same by the error rule of `course_lib.verify`.

A result is exact, wrong, or wrong with a warning (`lost` of the result). A program may also be refused by an error of
the library, or crash. Exit status: 0 if `fuse` was silently wrong and crashed only where `OF_OPERATORS` says why, 1
otherwise.
"""

import argparse
import collections
import contextlib
import copy
import io
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map_only

from benchmarks.fusion_trials.adversarial_programs import NOTED, AdversarialProgram, adversarial_programs
from course_lib.errors import CourseError
from course_lib.fusion import fuse
from course_lib.isolation import seed_everything
from course_lib.verify.error_rule import deviation

SEED = 1
# Formulas whose operator in PyTorch gives NaN at the ends of range: GELU of infinity, LayerNorm of 1e30. The formulas
# do not, and `course_lib/fusion/passes/formulas.py` says so. GELU of infinity is NaN by oneDNN on a CPU; it is infinity
# by the formula, on CUDA, and in the compiled body of `bias_gelu`. They count as wrong in the table.
OF_OPERATORS = ("0.5 * odd * (1 + torch.erf", "F.gelu(odd + b)", "big.var(-1")
VERDICTS = ("exact", "said wrong", "refused", "wrong", "crashed")
Entry = torch.Tensor | str | None


@dataclass
class Outcome:
    """Hold all that two calls of a program gave and changed, or the error that was raised."""

    entries: dict[str, Entry] = field(default_factory=dict)
    raised: str = ""
    said: str = ""  # what the library said is lost


def run(module: nn.Module, program: AdversarialProgram, state: nn.Module, *, gradients: bool, wide: bool) -> Outcome:
    """Call `module` twice, and return what happened; `state` holds the parameters, and is `module` or what it wraps.

    With `wide`, all computes at fp64.
    """
    found = Outcome()
    seed_everything(SEED)
    NOTED.clear()
    try:
        for call in (0, 1):
            found.entries |= {f"call {call}: {name}": value for name, value in _call(module, program, call, gradients,
                                                                                    wide).items()}  # fmt: skip
    except Exception as error:  # a program or a compiler may raise anything
        found.raised = f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
    found.entries |= {f"state {name}": _kept(value) for name, value in state.state_dict().items()}
    if gradients:
        found.entries |= {f"gradient of {name}": _kept(one.grad) for name, one in state.named_parameters()}
    found.entries |= {"random state": torch.get_rng_state(), "notes": str(NOTED)}
    found.entries |= {"calls": str(getattr(state, "calls", 0))}
    return found


def _call(module: nn.Module, program: AdversarialProgram, call: int, gradients: bool, wide: bool) -> dict[str, Entry]:
    inputs = program.inputs(call)
    if wide:
        inputs = tree_map_only(torch.Tensor, lambda one: one.double() if one.is_floating_point() else one, inputs)
    leaves = [one for one in tree_leaves(inputs) if isinstance(one, torch.Tensor) and one.is_floating_point()]
    if gradients:
        inputs = _writable(inputs, leaves)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        outputs = module(*inputs)
    tensors = [one for one in tree_leaves(outputs) if isinstance(one, torch.Tensor)]
    found: dict[str, Entry] = {f"output {number}": _kept(one) for number, one in enumerate(tensors)}
    found |= {f"strides of output {number}": str(one.stride()) for number, one in enumerate(tensors)}
    found["printed"] = printed.getvalue()
    roots = [one for one in tensors if one.requires_grad]
    if gradients and roots:
        weights = [
            torch.linspace(0.5, 1.5, max(1, one.numel()))[: one.numel()].view(one.shape).to(one) for one in roots
        ]
        torch.autograd.backward(roots, weights)
    after = [one for one in tree_leaves(inputs) if isinstance(one, torch.Tensor)]
    found |= {f"input {number}": _kept(one) for number, one in enumerate(after)}
    if gradients:
        found |= {f"gradient of input {number}": _kept(one.grad) for number, one in enumerate(leaves)}
    return found


def _writable(inputs: tuple[Any, ...], leaves: Sequence[torch.Tensor]) -> tuple[Any, ...]:
    """Return inputs that may be written in place, and lead to the leaves; what shares memory goes on sharing it."""
    bases: dict[int, torch.Tensor] = {}
    for leaf in leaves:
        leaf.requires_grad_()

    def made(one: torch.Tensor) -> torch.Tensor:
        if not one.is_floating_point():
            return one
        key = one.untyped_storage().data_ptr()
        if key not in bases:
            sharing = (other for other in leaves if other.untyped_storage().data_ptr() == key and other.is_contiguous())
            bases[key] = next(other for other in sharing if other.nbytes == other.untyped_storage().nbytes()).clone()
        whole = bases[key]
        is_whole = one.shape == whole.shape and one.stride() == whole.stride()
        return whole if is_whole else whole.as_strided(one.shape, one.stride())

    return tuple(tree_map_only(torch.Tensor, made, inputs))


def _kept(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.detach().clone()


def difference(expected: Outcome, truth: Outcome, found: Outcome) -> str:
    """Return what differs, or an empty text; `truth` is the run at fp64."""
    if found.raised or expected.raised:
        return "" if bool(found.raised) == bool(expected.raised) else f"raised: {found.raised or 'nothing'}"
    sizes = [1.0] + [float(one.abs().nan_to_num(0, 0, 0).max()) for name, one in expected.entries.items()
             if "gradient" in name and isinstance(one, torch.Tensor) and one.numel()]  # fmt: skip
    state = expected.entries["random state"]
    drew = isinstance(state, torch.Tensor) and not torch.equal(state, torch.Generator().manual_seed(SEED).get_state())
    for name, value in expected.entries.items():
        other = found.entries.get(name)
        if isinstance(value, torch.Tensor) and isinstance(other, torch.Tensor):
            magnitude = max(sizes) if "gradient" in name else 0.0
            said = _tensor_difference(value, None if drew else truth.entries.get(name), other, magnitude)
        elif "gradient" in name and not any(
            isinstance(one, torch.Tensor) and bool(one.any()) for one in (value, other)
        ):
            said = ""  # a gradient of zeros is the same as none
        else:
            said = "" if type(value) is type(other) and value == other else f"{other!r} in place of {value!r}"
        if said:
            return f"{name}: {said}"
    return ""


def _tensor_difference(expected: torch.Tensor, truth: Entry, found: torch.Tensor, magnitude: float) -> str:
    if (expected.shape, expected.dtype) != (found.shape, found.dtype):
        return f"{found.dtype} {tuple(found.shape)} in place of {expected.dtype} {tuple(expected.shape)}"
    if not isinstance(truth, torch.Tensor) or truth.shape != expected.shape:
        truth = expected.double()  # a run at fp64 draws other numbers, and some programs refuse it
    measured = deviation(found, truth.double(), expected, magnitude=magnitude)
    return "" if measured.within_bound else str(measured)


def try_all(program: AdversarialProgram, *, with_inductor: bool) -> dict[str, tuple[str, str]]:
    """Return the verdict on each compiler, and what it rests on."""
    expected = truth = Outcome()
    for gradients in (True, False):
        model = copy.deepcopy(program.module)
        expected = run(model, program, model, gradients=gradients, wide=False)
        if not expected.raised:
            break
    if not expected.raised:
        model = copy.deepcopy(program.module).double()
        truth = run(model, program, model, gradients=gradients, wide=True)
    judge = lambda made: difference(expected, truth, made)  # noqa: E731  # one expression, used twice
    verdicts = {"fuse": _verdict(lambda: _fused(program, gradients), judge)}
    if with_inductor:
        verdicts["Inductor"] = _verdict(lambda: _compiled(program, gradients), judge)
    return verdicts


def _verdict(make: Callable[[], Outcome], judge: Callable[[Outcome], str]) -> tuple[str, str]:
    try:
        outcome = make()
    except CourseError as error:
        return "refused", f"{type(error).__name__}: {error}"
    except Exception as error:  # a compiler may raise anything
        return "crashed", f"{type(error).__name__}: {error}"
    said = judge(outcome)
    if not said:
        return "exact", outcome.said
    return ("said wrong", outcome.said) if outcome.said else ("crashed" if "raised: " in said else "wrong", said)


def _fused(program: AdversarialProgram, gradients: bool) -> Outcome:
    result = fuse(copy.deepcopy(program.module), program.inputs(0))
    gm = result.graph_module
    outcome = run(gm, program, gm, gradients=gradients, wide=False)
    outcome.said = "; ".join(result.lost)
    return outcome


def _compiled(program: AdversarialProgram, gradients: bool) -> Outcome:
    torch._dynamo.reset()
    model = copy.deepcopy(program.module)
    with torch._inductor.config.patch(fallback_random=True):
        return run(torch.compile(model), program, model, gradients=gradients, wide=False)  # type: ignore[arg-type]


def table(verdicts: Sequence[tuple[str, dict[str, tuple[str, str]]]]) -> str:
    """Return one line for each part of the programs and each compiler."""
    counts: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for part, by_compiler in verdicts:
        for compiler, (verdict, _) in by_compiler.items():
            counts[part, compiler][verdict] += 1
            counts["all", compiler][verdict] += 1
    lines = [f"{'part':24}{'compiler':10}" + "".join(f"{name:>12}" for name in VERDICTS)]
    for (part, compiler), found in counts.items():
        lines.append(f"{part:24}{compiler:10}" + "".join(f"{found[name]:>12}" for name in VERDICTS))
    return "\n".join(lines)


def main() -> int:
    """Run all programs, and print each result that is not exact, and the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--without-inductor", action="store_true")
    parser.add_argument("--part", default="", help="only the parts whose names begin so")
    parser.add_argument("--quick", action="store_true", help="every tenth program, without Inductor")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    start, busy = time.perf_counter(), time.process_time()
    chosen = [one for one in adversarial_programs() if one.part.startswith(options.part)]
    found, unexplained = [], []
    for program in chosen[:: 10 if options.quick else 1]:
        verdicts = try_all(program, with_inductor=not (options.without_inductor or options.quick))
        found.append((program.part, verdicts))
        if not any(text in program.source for text in OF_OPERATORS):
            unexplained.append((program.part, verdicts))
        for compiler, (verdict, said) in verdicts.items():
            if verdict != "exact" or said:
                print(f"{compiler} {verdict}: {program.part}: {program.source!r}: {' '.join(said.split())[:200]}",
                      flush=True)  # fmt: skip
    print("\n" + table(found))
    took, busy = time.perf_counter() - start, time.process_time() - busy
    print(f"\n{len(found)} programs in {took:.0f} s ({busy:.0f} s of CPU in this process)")
    return int(any(verdicts["fuse"][0] in ("wrong", "crashed") for _, verdicts in unexplained))


if __name__ == "__main__":
    sys.exit(main())
