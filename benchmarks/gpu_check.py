"""Run tests/gpu, check the timer and measure the kernels on a CUDA machine; write a JSON file and a Markdown table.

    python3 benchmarks/gpu_check.py [--dry-run] [--results FOLDER]

Needs torch 2.11 to 2.13, the Triton that comes with it, and nothing else: no pytest, no Jupyter, no network. Meant to
take under eight minutes, which no GPU has shown yet. Exit status: 0 all passed, 1 a test or the timer's check failed,
3 no CUDA device is here. A target of speed that is missed is in the table, and changes no exit status.

``--dry-run`` tries the script itself out on the CPU, on tiny tensors: its numbers say nothing about a GPU. With
TRITON_INTERPRET=1 in the environment the operators then run as kernels in Triton's interpreter, which takes a minute;
without it, as PyTorch's own operators. Not yet run on CUDA.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
# A GPU machine has this folder, but did not install it.
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import kernel_times  # noqa: E402  # found by the line above

from course_lib.timing import selfcheck  # noqa: E402

SCHEMA = "fusion-course/gpu-check/2"


def run_tests(device: str) -> dict[str, str]:
    """Return what each test in tests/gpu came to: "passed", or the last line of its traceback."""
    os.environ["GPU_CHECK_DEVICE"] = device
    outcomes = {}
    for file in sorted(ROOT.glob("tests/gpu/test_*.py")):
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name in sorted(vars(module)):
            if name.startswith("test_"):
                outcomes[f"{file.stem}::{name}"] = outcome(getattr(module, name))
                print(f"  {outcomes[f'{file.stem}::{name}'].splitlines()[0]:8} {name}", flush=True)
    return outcomes


def outcome(test: Callable[[], None]) -> str:
    """Return "passed", or "failed: " with the last line of the traceback."""
    try:
        test()
    except Exception:
        return "failed: " + traceback.format_exc().strip().splitlines()[-1]
    return "passed"


def machine(device: str) -> dict[str, str]:
    """Return what one has to know of the machine to read the numbers."""
    facts = {"torch": torch.__version__, "python": platform.python_version(), "system": platform.platform()}
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        capability = f"{properties.major}.{properties.minor}"
        memory = f"{properties.total_memory / 2**30:.0f} GiB"
        return facts | {
            "device": properties.name,
            "capability": capability,
            "memory": memory,
            "cuda": str(torch.version.cuda),
            "triton": version("triton"),
        }
    return facts | {"device": f"cpu {platform.machine()}"}


def version(package: str) -> str:
    """Return the version of a package, or say that it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def write(record: dict[str, Any], table: str, folder: Path) -> Path:
    """Write the record as DEVICE-DATE.json into `folder`, the table beside it as .md, and return where both lie."""
    device = re.sub(r"[^a-z0-9]+", "-", record["machine"]["device"].lower()).strip("-")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{device}-{record['date']}.json"
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(table, encoding="utf-8")
    return path


def as_markdown(record: dict[str, Any], kernels: kernel_times.Report) -> str:
    """Return what one reads first: the machine, what failed, and the table of the kernels."""
    facts = "\n".join(f"- {name}: {value}" for name, value in record["machine"].items())
    failed = [f"- {name}: {outcome}" for name, outcome in record["tests"].items() if outcome != "passed"]
    tests = "\n".join(failed) or f"All {len(record['tests'])} passed."
    timer = "passed" if record["timer"]["passed"] else "**failed**, so the times below mean little"
    return (
        f"# GPU check of {record['date']}\n\n{facts}\n\n## Tests\n\n{tests}\n\nThe timer's check of itself: {timer}."
        f"\n\n## Kernels\n\n{kernel_times.as_markdown(kernels)}"
    )


def main() -> int:
    """Run everything and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dry-run", action="store_true", help="try the script out on the CPU, on tiny tensors")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results", metavar="FOLDER")
    arguments = parser.parse_args()
    device = "cpu" if arguments.dry_run else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        print("torch finds no CUDA device here; run this on a machine with an NVIDIA GPU.", file=sys.stderr)
        return 3
    print(f"==> tests/gpu on {device}")
    tests = run_tests(device)
    print("==> Checking the timer")
    timer = selfcheck(device=device)
    print(f"{timer}\n==> Measuring the kernels")
    kernels = kernel_times.measure_kernels(kernel_times.dry_plan() if arguments.dry_run else kernel_times.cuda_plan())
    record = {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(device),
        "tests": tests,
        "timer": timer.to_json(),
        "kernels": kernels.to_json(),
    }
    table = as_markdown(record, kernels)
    print(f"{table}\n==> Written to {write(record, table, arguments.results)}")
    # On a CPU shared with others the timer may well fail its check, which then says nothing about the script.
    return 0 if set(tests.values()) == {"passed"} and (timer.passed or arguments.dry_run) else 1


if __name__ == "__main__":
    sys.exit(main())
