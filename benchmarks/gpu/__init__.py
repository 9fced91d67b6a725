"""Sections of `make gpu-check`: each is one file in `sections/` and runs in a process of its own.

A section is found by its file. Add `benchmarks/gpu/sections/NAME.py` with a `SECTION`:

    def run(around: Run) -> None:
        for size in (1, 2):
            if around.left_s <= 0:
                break
            around.note(str(size), measure(size, device=around.device))

    SECTION = Section("What it is about", order=60, budget_s=30, run=run, as_markdown=table, failures=failures)

All notes given to `around.note` are in the result, even if the section crashes or exceeds its budget.
"""
