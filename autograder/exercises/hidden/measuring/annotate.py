"""Hidden checks and controls of exercise 02.5."""

from __future__ import annotations

from autograder.exercises.measuring import annotate as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart


def _catching(draw: Draw) -> list[visible.Part]:
    return [visible.program(draw, depth, failing=True, catching=True) for depth in (2, 3, 4, 4)]


def _deep(draw: Draw) -> list[visible.Part]:
    return [visible.program(draw, depth, failing=fails) for depth in (5, 6) for fails in (False, True)]


REFERENCE = """
class Failed(Exception):
    pass


def run_with_ranges(program):
    log = []

    @contextmanager
    def named(name):
        log.append(f"begin {name}")
        try:
            yield
        finally:
            log.append(f"end {name}")

    def run(part):
        with named(part["name"]):
            try:
                for item in part["body"]:
                    if isinstance(item, dict):
                        run(item)
                    else:
                        log.append(item.rstrip("!"))
                        if item.endswith("!"):
                            raise Failed
            except Failed:
                if not part["catches"]:
                    raise

    try:
        run(program)
    except Failed:
        pass
    return log
"""
CLOSES_LATE = "        except KeyError:\n            pass\n        else:\n            log"
NO_FINALLY = REFERENCE.replace("        finally:\n            log", CLOSES_LATE)
SWALLOWS = REFERENCE.replace('if not part["catches"]:\n                    raise', "pass")

HIDDEN = HiddenPart(
    checks=(
        Check("behaviour stays the same where a part catches", "behaviour", 1.6, visible.logs(_catching)),
        Check("deep programs", "nesting", 0.8, visible.logs(_deep)),
    ),
    controls=(
        Control("reference", REFERENCE, 6),
        Control("ranges stay open", NO_FINALLY, 2),
        Control("ranges swallow failures", SWALLOWS, 2),
        Control(
            "operations alone",
            "def run_with_ranges(program):\n    return [i for i in program['body'] if i == str(i)]\n",
            0,
        ),
    ),
)
