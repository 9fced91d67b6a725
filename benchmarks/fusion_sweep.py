"""Try the passes on generated programs, and count wrong results and missed fusions.

    python -m benchmarks.fusion_sweep [--programs COUNT] [--first NUMBER] [--quick]

Each program is captured, fused by all default passes and the one that its seed is for, and compared with itself by
`course_lib.fusion.verify` in fp64: values, gradients, strides, aliasing, mutation, masks of dropout, state. Where
LayerNorm became BatchNorm, it is compared with the program whose LayerNorm was exchanged by hand. What the programs are
is said in `tests/course_lib/fusion/generated_programs.py`. A program that PyTorch itself refuses to run is counted
apart.

Exit status: 0 if no result was wrong and at least 95 % of the programs that must fuse did; 1 otherwise.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
import warnings
from collections.abc import Callable, Iterable

import torch

from tests.course_lib.fusion.program_trials import Outcome, try_out

MUST_FUSE_SHARE = 0.95


def table(outcomes: Iterable[Outcome]) -> str:
    """Return one line for each edit, the unedited programs first: how many, fused, wrong."""
    return _table("what changed the meaning", outcomes, lambda one: one.program.edit or "nothing: must fuse")


def table_of_passes(outcomes: Iterable[Outcome]) -> str:
    """Return two lines for each pass, for the programs that it must fuse and for those whose meaning was changed."""
    return _table(
        "pass", outcomes, lambda one: f"{one.program.seed.name}{'' if one.program.must_fuse else ', changed'}"
    )


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
    """Run the sweep and print the table, and each program that came out wrong or unfused."""
    parser = argparse.ArgumentParser(description="Try the passes on generated programs.")
    parser.add_argument("--programs", type=int, default=2000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--quick", action="store_true", help="30 programs only")
    options = parser.parse_args()
    count = 30 if options.quick else options.programs
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    start, busy = time.perf_counter(), time.process_time()
    outcomes = [try_out(number) for number in range(options.first, options.first + count)]
    wrong = [outcome for outcome in outcomes if outcome.wrong]
    must = [outcome for outcome in outcomes if outcome.program.must_fuse]
    missed = [outcome for outcome in must if not outcome.fused]
    for outcome in (*wrong, *missed):
        print(f"program {outcome.number}:\n{outcome.program.source}{outcome.wrong or outcome.explanation}\n")
    print(f"{table(outcomes)}\n\n{table_of_passes(outcomes)}\n")
    share = 1 - len(missed) / len(must) if must else 1.0
    took, busy = time.perf_counter() - start, time.process_time() - busy
    print(f"{len(outcomes)} programs in {took:.0f} s ({busy:.0f} s of CPU); wrong results: {len(wrong)};", end=" ")
    print(f"of {len(must)} that must fuse, {share:.1%} did; PyTorch refused {sum(o.refused for o in outcomes)}")
    return int(bool(wrong) or share < MUST_FUSE_SHARE)


if __name__ == "__main__":
    sys.exit(main())
