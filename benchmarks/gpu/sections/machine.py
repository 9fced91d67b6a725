"""Note the machine, since a time has no meaning without it."""

import torch

from autograder.host.clock.contest import problems
from benchmarks.gpu.section import Notes, Run, Section
from course_lib.timing import environment
from course_lib.timing.environment import version_of


def run(around: Run) -> None:
    """Note the device, the versions and the clocks."""
    if around.device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        torch.zeros(1, device="cuda")  # now this process uses the device, so the environment includes it
        around.note("device", properties.name)
        around.note("capability", f"{properties.major}.{properties.minor}")
        around.note("memory", f"{properties.total_memory / 2**30:.0f} GiB")
    else:
        around.note("device", f"cpu, {environment().processor}")
    around.note("triton", version_of("triton") or "not installed")
    around.note("problems", list(problems(around.device)))  # first, because this wakes the device
    around.note("environment", environment().to_json())
    around.note("text", str(environment()))


def as_markdown(notes: Notes) -> str:
    """Return a line for each fact."""
    facts = [f"- {name}: {notes[name]}" for name in ("device", "capability", "memory", "triton") if name in notes]
    facts += [f"- {line}" for line in notes.get("text", "").splitlines()]
    return "\n".join(facts + [f"- **unfair to time: {problem}**" for problem in notes.get("problems", [])])


SECTION = Section("Machine", order=10, budget_s=20, run=run, as_markdown=as_markdown)
