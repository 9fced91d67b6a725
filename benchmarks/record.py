"""Run a measurement, show what it prints, and keep that with the machine as benchmarks/results/NAME.md.

    python -m benchmarks.record NAME [--results FOLDER] [--part WORD] [arguments of NAME.py]

NAME.py is a file of benchmarks or benchmarks/grading that takes `--quick`.
With `--part`, NAME-WORD.md is written, so that a measurement in several runs keeps a record of each.
A run with `--quick` only tests the measurement, so it is kept only if `--results` is given. Exit status: that of the
measurement.
"""

import argparse
import datetime
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from course_lib.timing import environment

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
TAKES_QUICK = re.compile(r'add_argument\("--quick"')  # is in the text of each measurement, and of no other file


def measurements() -> dict[str, str]:
    """Return the module of each measurement by its name."""
    folders = {"benchmarks": ROOT / "benchmarks", "benchmarks.grading": ROOT / "benchmarks" / "grading"}
    return {
        file.stem: f"{package}.{file.stem}"
        for package, folder in folders.items()
        for file in folder.glob("[a-z]*.py")
        if TAKES_QUICK.search(file.read_text(encoding="utf-8"))
    }


def run(name: str, arguments: Sequence[str]) -> tuple[int, str]:
    """Run a measurement, show its output, and return its exit status and its output."""
    command = [sys.executable, "-m", measurements()[name], *arguments]
    printed = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            printed.append(line)
    return process.returncode, "".join(printed)


def as_markdown(name: str, arguments: Sequence[str], machine: str, status: int, printed: str) -> str:
    """Return the record: the command, the machine and its load, and the output."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    command = " ".join(["python -m benchmarks.record", name, *arguments])
    facts = "\n".join(f"- {line}" for line in machine.splitlines())
    after = f"- load when it ended: {environment().load_average or 0:.1f}; exit status {status}"
    return f"# {name}, {date}\n\n`{command}`\n\n{facts}\n{after}\n\n```\n{printed.strip()}\n```\n"


def main() -> int:
    """Run the measurement, show and keep its output, and return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=sorted(measurements()))
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="keep it there, also a quick run")
    parser.add_argument("--part", metavar="WORD", help="keep it as NAME-WORD.md")
    options, arguments = parser.parse_known_args()
    torch.set_num_threads(1)  # as the measurements do, since the record states it
    machine = str(environment())
    status, printed = run(options.name, arguments)
    folder = options.results or (None if "--quick" in arguments else RESULTS)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{options.name}{f'-{options.part}' if options.part else ''}.md"
        written = [*(["--part", options.part] if options.part else []), *arguments]
        path.write_text(as_markdown(options.name, written, machine, status, printed), encoding="utf-8")
        print(f"Written to {path}")
    return status


if __name__ == "__main__":
    sys.exit(main())
