"""Run tests/gpu and a few measurements on a CUDA machine, and write what came out as JSON.

    python3 benchmarks/gpu_check.py [--device cuda|cpu] [--results FOLDER]

Needs torch 2.11 to 2.13 and nothing else: no pytest, no Jupyter, no network. Exit status: 0 all passed, 1 a test
failed, 3 the device is not here. ``--device cpu`` tries the script itself out; its numbers say nothing about a GPU.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import platform
import re
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = "fusion-course/gpu-check/1"
# Large enough on a data-centre GPU that one call takes longer than its launch; small enough for a laptop's.
ROWS, COLUMNS = {"cuda": 65536, "cpu": 512}, 768
WINDOWS, CALLS_PER_WINDOW, WARM_UP_CALLS = 21, 20, 5


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


def median_time_us(call: Callable[[], Any], device: str) -> float:
    """Return the median over windows of the time of one call of `call`, in microseconds."""
    for _ in range(WARM_UP_CALLS):
        call()
    return statistics.median(window_us(call, device) / CALLS_PER_WINDOW for _ in range(WINDOWS))


def window_us(call: Callable[[], Any], device: str) -> float:
    """Return how long a window of calls takes, from an idle device to an idle device."""
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    wait()
    start_s = time.perf_counter()
    for _ in range(CALLS_PER_WINDOW):
        call()
    wait()
    return (time.perf_counter() - start_s) * 1e6


def measure(device: str) -> dict[str, float]:
    """Return times of a copy, of bias + GELU as two operators, and of it as one, on the same half-precision input."""
    dtype = torch.float16 if device == "cuda" else torch.float32
    x = torch.randn(ROWS[device], COLUMNS, device=device, dtype=dtype)
    bias, target = torch.randn(COLUMNS, device=device, dtype=dtype), torch.empty_like(x)
    copy_us = median_time_us(lambda: target.copy_(x), device)
    moved_bytes = 2 * x.numel() * x.element_size()
    return {
        "rows": x.shape[0],
        "columns": x.shape[1],
        "copy_us": copy_us,
        "copy_gb_per_s": moved_bytes / copy_us / 1e3,
        "bias_gelu_two_operators_us": median_time_us(lambda: F.gelu(x + bias), device),
        "bias_gelu_one_operator_us": median_time_us(lambda: torch.ops.course_lib.bias_gelu(x, bias), device),
    }


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
        }
    return facts | {"device": f"cpu {platform.machine()}"}


def write(record: dict[str, Any], folder: Path) -> Path:
    """Write the record as DEVICE-DATE.json into `folder` and return where it lies."""
    device = re.sub(r"[^a-z0-9]+", "-", record["machine"]["device"].lower()).strip("-")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{device}-{record['date']}.json"
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return path


def main() -> int:
    """Run everything and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results", metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("torch finds no CUDA device here; run this on a machine with an NVIDIA GPU.", file=sys.stderr)
        return 3
    sys.path.insert(0, str(ROOT))
    print(f"==> tests/gpu on {arguments.device}")
    tests = run_tests(arguments.device)
    print("==> Measuring")
    record = {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(arguments.device),
        "tests": tests,
        "measured": measure(arguments.device),
    }
    print(f"==> Written to {write(record, arguments.results)}")
    return 0 if set(tests.values()) == {"passed"} else 1


if __name__ == "__main__":
    sys.exit(main())
