"""Try the passes on generated programs, and count wrong results and missed fusions.

    python -m benchmarks.fusion_sweep [--programs COUNT] [--formulas COUNT] [--first NUMBER] [--quick]

Each program is captured, and fused by all default passes and the pass of its seed. The result is compared with the
program by `course_lib.verify` in fp64: values, gradients, strides, aliasing, mutation, masks of dropout, state. Where
LayerNorm became BatchNorm, the reference is the program with its LayerNorm replaced by hand. The programs are
described in `benchmarks/fusion_trials/generated_programs.py`. A program that PyTorch itself refuses to run is counted
separately. The same is done for explicit formulas in random order and spelling, see
`benchmarks/fusion_trials/formula_programs.py`.

Exit status: 0 if no result was wrong and at least 95 % of the programs that must fuse did; 1 otherwise.
"""

import argparse
import collections
import sys
import time
import warnings
from collections.abc import Callable, Iterable

import torch

from benchmarks.fusion_trials.generated_programs import Program
from benchmarks.fusion_trials.program_trials import Outcome, try_formula, try_out

MUST_FUSE_SHARE = 0.95


def table(outcomes: Iterable[Outcome]) -> str:
    """Return one line for each edit, the unedited programs first: how many, fused, wrong."""
    return _table("what changed the meaning", outcomes, lambda one: one.program.edit or "nothing: must fuse")


def table_of_passes(outcomes: Iterable[Outcome]) -> str:
    """Return two lines for each pass, for the programs that it must fuse and for those whose meaning was changed."""
    return _table(
        "pass or formula", outcomes, lambda one: f"{_kind(one)}{'' if one.program.must_fuse else ', changed'}"
    )


def _kind(outcome: Outcome) -> str:
    program = outcome.program
    return program.seed.name if isinstance(program, Program) else program.formula


def _table(title: str, outcomes: Iterable[Outcome], name: Callable[[Outcome], str]) -> str:
    groups: dict[str, list[Outcome]] = collections.defaultdict(list)
    for outcome in outcomes:
        groups[name(outcome)].append(outcome)
    lines = [f"{title:44}{'programs':>10}{'fused':>8}{'wrong':>8}"]
    for group in sorted(groups, key=lambda group: (not group.startswith("nothing"), group)):
        ran = [outcome for outcome in groups[group] if not outcome.refused]
        fused, wrong = sum(outcome.fused for outcome in ran), sum(bool(outcome.wrong) for outcome in ran)
        lines.append(f"{group:44}{len(ran):>10}{fused:>8}{wrong:>8}")
    return "\n".join(lines)


def main() -> int:
    """Run the sweeps and print their tables, and each program with a wrong result or a missed fusion."""
    parser = argparse.ArgumentParser(description="Try the passes on generated programs.")
    parser.add_argument("--programs", type=int, default=2000, help="how many")
    parser.add_argument("--formulas", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--quick", action="store_true", help="30 programs and 30 formulas only")
    options = parser.parse_args()
    programs, formulas = (30, 30) if options.quick else (options.programs, options.formulas)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    failed = _sweep("programs", try_out, range(options.first, options.first + programs))
    return int(_sweep("formulas", try_formula, range(options.first, options.first + formulas)) or failed)


def _sweep(what: str, trial: Callable[[int], Outcome], numbers: range) -> bool:
    """Run one sweep, print its result, and return whether it failed."""
    start, busy = time.perf_counter(), time.process_time()
    outcomes = [trial(number) for number in numbers]
    wrong = [outcome for outcome in outcomes if outcome.wrong]
    must = [outcome for outcome in outcomes if outcome.program.must_fuse]
    missed = [outcome for outcome in must if not outcome.fused]
    for outcome in (*wrong, *missed):
        print(f"{what} {outcome.number}:\n{outcome.program.source}{outcome.wrong or outcome.explanation}\n")
    print(f"{table(outcomes)}\n\n{table_of_passes(outcomes)}\n")
    share = 1 - len(missed) / len(must) if must else 1.0
    took, busy = time.perf_counter() - start, time.process_time() - busy
    print(f"{len(outcomes)} {what} in {took:.0f} s ({busy:.0f} s of CPU); wrong results: {len(wrong)};", end=" ")
    print(f"of {len(must)} that must fuse, {share:.1%} did; PyTorch refused {sum(o.refused for o in outcomes)}\n")
    return bool(wrong) or share < MUST_FUSE_SHARE


if __name__ == "__main__":
    sys.exit(main())
