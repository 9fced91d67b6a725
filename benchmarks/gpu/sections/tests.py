"""Run the tests in tests/gpu, each file in a process of its own, since an invalid write spoils a CUDA context.

Files run side by side, because compilation takes most of their time, except those that measure.
"""

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree  # of a file that pytest wrote
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.gpu.running import INTERPRETER, ROOT
from benchmarks.gpu.section import Notes, Run, Section

MEASURING = ("test_timer",)


def run(around: Run) -> None:
    """Run each file of tests and note the outcome of each test."""
    files = sorted((ROOT / "tests" / "gpu").glob("test_*.py"))
    measuring = [file for file in files if file.stem in MEASURING]
    others = [file for file in files if file not in measuring]
    for processes, some in ((len(others), others), (1, measuring)):
        with ThreadPoolExecutor(max(processes, 1)) as pool:
            for file, found in zip(some, pool.map(lambda file: outcomes(file, around.left_s), some), strict=True):
                around.note(file.stem, found)


def outcomes(file: Path, left_s: float) -> dict[str, str]:
    """Return "passed", "skipped: why" or "failed: why" for each test; if pytest itself fails, return the reason."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", str(file)]
        try:
            answer = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=max(left_s, 1.0)
            )
        except subprocess.TimeoutExpired:
            return {"(all)": "failed: no time was left"}
        if not report.is_file():
            last = (answer.stderr or answer.stdout).strip().splitlines()[-1:] or ["it said nothing"]
            return {"(all)": f"failed: pytest ended with {answer.returncode}: {last[0][:300]}"}
        return {case.get("name", "?"): _outcome(case) for case in ElementTree.parse(report).iter("testcase")}


def _outcome(case: ElementTree.Element) -> str:
    for kind in ("failure", "error", "skipped"):
        found = case.find(kind)
        if found is not None:
            said = " ".join((found.get("message") or "").split())[:300]
            return f"{'skipped' if kind == 'skipped' else 'failed'}: {said}"
    return "passed"


def failures(notes: Notes) -> list[str]:
    """Return a sentence for each test that did not pass; a skip passes only if Triton's interpreter is the reason."""
    found = [
        f"{file}::{name} {told}"
        for file, tests in notes.items()
        for name, told in tests.items()
        if told != "passed" and INTERPRETER not in told
    ]
    return found or ([] if notes else ["no test was run"])


def as_markdown(notes: Notes) -> str:
    """Return how many passed, and a line for each that did not."""
    failed = [f"- {sentence}" for sentence in failures(notes)]
    told = [each for tests in notes.values() for each in tests.values()]
    left = sorted({each for each in told if INTERPRETER in each})
    summary = f"{told.count('passed')} passed, {len(failed)} did not."
    return "\n".join([summary, "", *failed, *(f"- {sum(each == one for each in told)} tests {one}" for one in left)])


SECTION = Section("Tests", order=30, budget_s=90, run=run, as_markdown=as_markdown, failures=failures)
