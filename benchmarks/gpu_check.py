"""Run the GPU's tests, check the timer and measure kernels and a whole layer; write a JSON file and a Markdown table.

    python3 benchmarks/gpu_check.py [--dry-run] [--only SECTION ...] [--results FOLDER] [--budget SECONDS]

Needs torch 2.11 to 2.13, the Triton that comes with it, and pytest: no Jupyter, no network. Ends within ten minutes:
each section has a process and a budget of its own (see `benchmarks/gpu`), so one that crashes or hangs does not affect
the others, and its results so far are kept.

Exit status: 0 nothing failed, 1 a test, the timer's check or a section failed, 3 no CUDA device is here. A missed
target of speed is shown in the table, and does not change the exit status.

`--dry-run` runs everything on the CPU with tiny tensors, and measures nothing. Where Triton is installed, the
operators run as kernels in its interpreter, unless that fails with this NumPy; with TRITON_INTERPRET=0 in the
environment, as PyTorch's own operators.
"""

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a GPU machine has this folder, but did not install it

import torch  # noqa: E402  # beside the next two

from benchmarks.gpu import running  # noqa: E402  # found by the line above
from benchmarks.gpu.section import sections  # noqa: E402

BUDGET_S = 590.0  # of all sections together: under ten minutes, start and report included
DRY_BUDGET_S = 900.0  # an interpreter on a busy CPU is slow


def main() -> int:
    """Run everything and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dry-run", action="store_true", help="try everything out on the CPU, on tiny tensors")
    parser.add_argument("--only", nargs="+", metavar="SECTION", choices=sections(), help="run these sections alone")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results", metavar="FOLDER")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="for all sections together")
    arguments = parser.parse_args()
    device = "cpu" if arguments.dry_run else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        print("torch finds no CUDA device here; run this on a machine with an NVIDIA GPU.", file=sys.stderr)
        return 3
    if arguments.dry_run:
        print(running.DRY.strip("*"))
    budget_s = arguments.budget or (DRY_BUDGET_S if arguments.dry_run else BUDGET_S)
    chosen = {name: one for name, one in sections().items() if not arguments.only or name in arguments.only}
    start_s, results = time.monotonic(), []
    for result in running.run_all(chosen, device, budget_s):
        print(f"==> {result.section.title}: {result.ending} in {result.elapsed_s:.0f} s", flush=True)
        results.append(result)
    record = running.as_record(results, device, time.monotonic() - start_s)
    table = running.as_markdown(results, record)
    print(f"{table}\n==> Written to {running.write(record, table, arguments.results)}")
    return 1 if any(result.failures for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
