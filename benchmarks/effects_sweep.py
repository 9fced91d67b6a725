"""Try the passes on generated programs with effects, and count wrong results.

    python -m benchmarks.effects_sweep [--programs COUNT] [--first NUMBER] [--quick]

Each program has a computation that a pass changes, and an effect beside it: a write in place in any spelling, a draw, a
module that keeps statistics, a call of unknown code. It is captured by torch.fx and fused by all default passes; then
its nodes are reordered for memory. Then program and result run from the same state: outputs, inputs, parameters and
buffers afterwards, what a helper noted, the random state, and gradients have to be equal. The programs are described in
`benchmarks/fusion_trials/effect_programs.py`. Where the capture itself loses something, or PyTorch refuses to run the
program, the program is counted apart.

Exit status: 0 if no result was wrong and every seed was fused at least once, 1 otherwise.
"""

import argparse
import collections
import copy
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks.fusion_trials.effect_programs import COUNTS, SEEDS, EffectProgram, generate_effect
from course_lib.capture import capture
from course_lib.fusion import PASSES, fuse
from course_lib.fusion.kept_state import keep_state
from course_lib.isolation import seed_everything
from course_lib.verify.error_rule import EAGER_FACTOR

NEW_MASKS = "bias_dropout_residual_layer_norm"  # in training, its dropout draws other numbers on purpose
ALSO = ("memory_order",)  # passes that are asked for in every program
NEAR = 16  # times what is allowed: a program in fp64 that is further away has drawn other numbers
ROUNDINGS = 16  # of the largest gradient: a smaller one may be the sum of a row of such terms that cancel


@dataclass(frozen=True)
class Trial:
    """Hold the outcome of one program."""

    number: int
    program: EffectProgram
    refused: str = ""  # by PyTorch, or lost by the capture
    fused: int = 0
    wrong: str = ""  # what differs after fusing


def try_effect(number: int) -> Trial:
    """Generate program `number`, fuse it and compare."""
    program = generate_effect(number)
    expected = _run(program.module, program, gradients=False)
    if isinstance(expected, str):
        return Trial(number, program, refused="PyTorch refuses it")
    captured = capture(program.module).graph_module
    keep_state(captured, program.module)
    if _difference(expected, _run(captured, program, gradients=False)):
        return Trial(number, program, refused="lost by the capture")
    names = [name for name, cls in PASSES.items() if cls.by_default or name in (program.asked, *ALSO)]
    if program.mode == "train":
        names = [name for name in names if name != NEW_MASKS]
    before = _state(program.module)
    result = fuse(program.module, program.inputs(False, torch.float32)[0], names)
    if _difference(before, _state(program.module)):
        return Trial(number, program, wrong="fuse changed the program")
    wrong = _difference(expected, _run(result.graph_module, program, gradients=False))
    if not wrong:
        expected, found = _run(program.module, program, True), _run(result.graph_module, program, True)
        wrong = _difference(expected, found)
        if wrong.startswith("gradient"):
            truth = _run(copy.deepcopy(program.module).double(), program, True, torch.float64)
            wrong = _difference(expected, found, {} if isinstance(truth, str) else truth)
    return Trial(number, program, "", result.num_matches, wrong and f"{wrong}\n{result.graph_module.code}")


Outcome = dict[str, torch.Tensor | None]


def _run(
    module: nn.Module, program: EffectProgram, gradients: bool, dtype: torch.dtype = torch.float32
) -> Outcome | str:
    """Return all that a run of a copy of `module` gives and changes, or the error that it raises."""
    module = copy.deepcopy(module)
    inputs, leaves = program.inputs(gradients, dtype)
    COUNTS.clear()
    seed_everything(1)
    try:
        with torch.set_grad_enabled(gradients):
            outputs = module(*inputs)
            if gradients:
                total = sum(output.double().pow(2).sum() for output in outputs)
                assert isinstance(total, torch.Tensor), "a program returns tensors"
                torch.autograd.backward(total)
    except (IndexError, RuntimeError, ValueError) as error:
        return str(error).partition("\n")[0]
    found: Outcome = {f"output {number}": output.detach() for number, output in enumerate(outputs)}
    found |= {f"input {number}": value.detach() for number, value in enumerate(inputs)}
    found |= _state(module) | {"random state": torch.get_rng_state(), "noted": torch.tensor(len(COUNTS))}
    if gradients:
        found |= {f"gradient {number}": leaf.grad for number, leaf in enumerate(leaves)}
        found |= {f"gradient of {name}": parameter.grad for name, parameter in module.named_parameters()}
    return found


def _state(module: nn.Module) -> Outcome:
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def _difference(expected: Outcome | str, found: Outcome | str, truth: Outcome | None = None) -> str:
    """Return what differs, or an empty text.

    With `truth`, the program's outcome in fp64, a gradient may be as far from it as the program's own, see `NEAR`.
    """
    if isinstance(expected, str) or isinstance(found, str):
        return "" if isinstance(expected, str) else f"it raises: {found}"
    rounding = _rounding_of_gradients(expected)
    for name, value in expected.items():
        other = found.get(name)
        if (value is None) != (other is None) and not name.startswith("gradient of"):
            return f"{name} is {other} in place of {value}"
        if value is None or other is None:
            continue
        allowed = max(1e-5, rounding.get(value.dtype, 0.0)) if name.startswith("gradient") else 1e-5
        if not torch.allclose(value.double(), other.double(), rtol=1e-4, atol=allowed, equal_nan=True):
            if name.startswith("gradient") and _is_as_near(value, other, (truth or {}).get(name), allowed):
                continue
            return (
                f"{name} differs by {float((value.double() - other.double()).abs().max()):.3g}, {allowed:.3g} allowed"
            )
    return ""


def _is_as_near(value: torch.Tensor, other: torch.Tensor, truth: torch.Tensor | None, allowed: float) -> bool:
    """Return whether a gradient is about as near to the truth as the program's own."""
    if truth is None:
        return False
    own, error = (float((one.double() - truth).abs().max()) for one in (value, other))
    return own <= NEAR * allowed and error <= EAGER_FACTOR * own + allowed


def _rounding_of_gradients(expected: Outcome) -> dict[torch.dtype, float]:
    """Return for each dtype what `ROUNDINGS` roundings of its largest finite gradient come to."""
    allowed: dict[torch.dtype, float] = {}
    for name, value in expected.items():
        if name.startswith("gradient") and value is not None and value.is_floating_point() and value.numel():
            largest = float(value.double().nan_to_num(0.0, 0.0, 0.0).abs().max())
            rounding = ROUNDINGS * torch.finfo(value.dtype).eps * largest
            allowed[value.dtype] = max(allowed.get(value.dtype, 0.0), rounding)
    return allowed


def table(trials: Sequence[Trial], title: str, name: Callable[[Trial], str]) -> str:
    """Return one line for each group: programs, those that a pass changed, wrong results."""
    groups: dict[str, list[Trial]] = collections.defaultdict(list)
    for trial in trials:
        if not trial.refused:
            groups[name(trial)].append(trial)
    lines = [f"{title:40}{'programs':>10}{'changed':>9}{'wrong':>8}"]
    for group, members in sorted(groups.items()):
        changed, wrong = sum(one.fused > 0 for one in members), sum(bool(one.wrong) for one in members)
        lines.append(f"{group:40}{len(members):>10}{changed:>9}{wrong:>8}")
    return "\n".join(lines)


def main() -> int:
    """Run the sweep, and print its tables and each program with a wrong result."""
    parser = argparse.ArgumentParser(description="Try the passes on generated programs with effects.")
    parser.add_argument("--programs", type=int, default=5000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--quick", action="store_true", help="60 programs only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    start, busy = time.perf_counter(), time.process_time()
    count = 60 if options.quick else options.programs
    trials = []
    for number in range(options.first, options.first + count):
        trials.append(trial := try_effect(number))
        if trial.wrong:
            print(f"program {number} ({trial.program.mode}):\n{trial.program.source}{trial.wrong}\n", flush=True)
    took, busy = time.perf_counter() - start, time.process_time() - busy
    print(table(trials, "effect", lambda one: one.program.effect))
    print("\n" + table(trials, "seed", lambda one: one.program.seed))
    wrong = sum(bool(trial.wrong) for trial in trials)
    apart = collections.Counter(trial.refused for trial in trials if trial.refused)
    print(f"\n{count} programs in {took:.0f} s ({busy:.0f} s of CPU); wrong results: {wrong};", end=" ")
    print(", ".join(f"{why}: {number}" for why, number in sorted(apart.items())) or "all were captured")
    fused = {trial.program.seed for trial in trials if trial.fused}
    return int(wrong > 0 or (not options.quick and not fused.issuperset(SEEDS)))


if __name__ == "__main__":
    sys.exit(main())
