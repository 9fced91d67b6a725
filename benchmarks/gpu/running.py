"""Run sections in processes of their own, each within its budget, and write their results as JSON and Markdown.

As a command, `python -m benchmarks.gpu.running SECTION DEVICE BUDGET_S NOTES`, it runs one section in its own process,
which the section may crash.
"""

import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu.section import Run, Section, section
from course_lib.timing.environment import version_of

ROOT = Path(__file__).resolve().parents[2]
STOPPING_S = 5.0  # the time that a section has left when it is told to stop
LINES_OF_A_CRASH = 12
INTERPRETER = "needs another interpreter of Triton"  # how the reason of a skipped test begins


@dataclass(frozen=True)
class Result:
    """Hold the result of one section."""

    name: str
    section: Section
    ending: str  # "done", or what went wrong
    elapsed_s: float
    notes: Mapping[str, Any]
    told: str = ""  # the last lines of its output, if it failed

    @property
    def failures(self) -> list[str]:
        """Return a sentence for each failure."""
        broken = [] if self.ending == "done" else [f"{self.ending}; what it had found by then is kept"]
        return [f"{self.section.title}: {sentence}" for sentence in (*broken, *self._asked("failures"))]

    @property
    def missed(self) -> list[str]:
        """Return a sentence for each missed target of speed."""
        return self._asked("missed")

    @property
    def markdown(self) -> str:
        """Return the section as Markdown."""
        try:
            text = self.section.as_markdown(self.notes) if self.notes else "It left nothing."
        except Exception as error:  # of notes that are not complete, or of a mistake in a section
            text = f"Its table cannot be written ({type(error).__name__}: {error}); its notes are in the JSON file."
        crash = f"\n\n```\n{self.told}\n```" if self.told else ""
        how = "" if self.ending == "done" else f"**{self.ending}.** "
        return f"## {self.section.title}\n\n{how}{text.strip()}{crash}\n"

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        kept = {"ending": self.ending, "elapsed_s": round(self.elapsed_s, 1), "told": self.told}
        return {**kept, "failures": self.failures, "missed": self.missed, "notes": dict(self.notes)}

    def _asked(self, question: str) -> list[str]:
        try:
            answer: list[str] = getattr(self.section, question)(self.notes)
        except Exception as error:  # notes that are not complete
            return [f"{self.section.title}: its notes cannot be judged ({type(error).__name__}: {error})"]
        return answer


def run_all(sections: Mapping[str, Section], device: str, budget_s: float) -> Iterator[Result]:
    """Run the sections one after the other, each within its budget and all within `budget_s`."""
    end_s = time.monotonic() + budget_s
    with tempfile.TemporaryDirectory() as folder:
        for name, section in sections.items():
            given_s = min(section.budget_s, end_s - time.monotonic())
            if given_s <= STOPPING_S:
                yield Result(name, section, "not run: no time was left", 0.0, {})
            else:
                yield run_one(name, section, device, given_s, Path(folder))


def run_one(name: str, section: Section, device: str, budget_s: float, folder: Path) -> Result:
    """Run one section in a process and return its result, also if it failed."""
    notes, log = folder / f"{name}.json", folder / f"{name}.log"
    asked_s = max(budget_s - STOPPING_S, budget_s / 2)
    command = [sys.executable, "-m", "benchmarks.gpu.running", name, device, str(asked_s), str(notes)]
    start_s = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=_environment(device, name), stdout=output, stderr=output, start_new_session=True
        )
        ending = _ending(process, budget_s)
    told = "" if ending == "done" else _last_lines(log)
    return Result(name, section, ending, time.monotonic() - start_s, _read(notes), told)


def _ending(process: subprocess.Popen[bytes], budget_s: float) -> str:
    try:
        status = process.wait(budget_s)
    except subprocess.TimeoutExpired:
        return f"stopped after {budget_s:.0f} s"
    finally:
        with suppress(ProcessLookupError):  # also the processes that the section started
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if status == 0:
        return "done"
    return f"crashed by {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"


def interpreter_obstacle() -> str:
    """Return the reason why Triton's interpreter cannot run a loop over tiles here; empty if it can."""
    triton, numpy = (version_of(package) for package in ("triton", "numpy"))
    if triton and numpy and _numbers(triton) < (3, 7) and _numbers(numpy) >= (2, 4):
        return f"{INTERPRETER}: Triton {triton} takes an array for a number in loops, which NumPy {numpy} refuses"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _environment(device: str, section: str) -> dict[str, str]:
    # The tests that need such loops are skipped; all sections that measure have them.
    usual = "0" if section != "tests" and interpreter_obstacle() else "1"
    interpreter = {"TRITON_INTERPRET": os.environ.get("TRITON_INTERPRET", usual)} if device == "cpu" else {}
    if interpreter.get("TRITON_INTERPRET") == "1":
        interpreter["GPU_CHECK_NO_LOOPS"] = interpreter_obstacle()
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    return {**os.environ, **interpreter, "GPU_CHECK_DEVICE": device, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"}


def _read(notes: Path) -> dict[str, Any]:
    if not notes.is_file():
        return {}
    found: dict[str, Any] = json.loads(notes.read_text(encoding="utf-8"))
    return found


def _last_lines(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(line[:300] for line in lines[-LINES_OF_A_CRASH:])


SCHEMA = "fusion-course/gpu-check/4"
DRY = "**A dry run on a CPU: nothing was measured on a GPU, and no number below says anything about one.**"


def as_record(results: Sequence[Result], device: str, elapsed_s: float) -> dict[str, Any]:
    """Return everything as plain data."""
    now = datetime.datetime.now(datetime.UTC)
    names = (result.notes.get("device") for result in results if result.name == "machine")
    return {
        "schema": SCHEMA,
        "date": now.date().isoformat(),
        "dry_run": device == "cpu",
        "device": str(next(names, None) or "unknown device"),
        "elapsed_s": round(elapsed_s, 1),
        "sections": {result.name: result.to_json() for result in results},
    }


def as_markdown(results: Sequence[Result], record: dict[str, Any]) -> str:
    """Return the report: failures, missed targets, then a part for each section."""
    failures = [sentence for result in results for sentence in result.failures]
    missed = [sentence for result in results for sentence in result.missed]
    head = [f"# GPU check of {record['date']}: {record['device']}", ""]
    head += [DRY, ""] if record["dry_run"] else []
    head += ["Failed:", "", *(f"- {line}" for line in failures), ""] if failures else ["Nothing failed.", ""]
    head += ["Targets of speed missed:", "", *(f"- {line}" for line in missed), ""] if missed else []
    times = ", ".join(f"{result.section.title.lower()} {result.elapsed_s:.0f} s" for result in results)
    head += [f"It took {record['elapsed_s']:.0f} s: {times}.", ""]
    return "\n".join([*head, *(result.markdown for result in results)])


def write(record: dict[str, Any], table: str, folder: Path) -> Path:
    """Write the record as DEVICE-DATE.json into `folder`, the table beside it as .md, and return the record's path."""
    device = re.sub(r"[^a-z0-9]+", "-", record["device"].lower()).strip("-")[:60]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{'dry-run-' if record['dry_run'] else ''}{device}-{record['date']}.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(table, encoding="utf-8")
    return path


def main() -> int:
    """Run the section named on the command line; an exception ends this process with a traceback."""
    name, device, budget_s, notes = sys.argv[1:]
    section(name).run(Run(device, Path(notes), time.monotonic() + float(budget_s)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
