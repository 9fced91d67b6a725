"""Programs on one matrix, drawn at random, and what Inductor makes of them: asked live, of the host's own programs.

For the steps see `course_lib.models.chains`.
"""

from functools import lru_cache

from autograder.host.draw import Draw
from course_lib.graph.generated_code import CompiledCost, lowered
from course_lib.models.chains import LINES, inputs_of, program_of

Chain = list[str]
EITHER = ("sort", "transpose")  # a sort copies what lies transposed; that rule is not asked for


def random_chain(draw: Draw, count: int, also: tuple[str, ...] = tuple(LINES)) -> Chain:
    """Return `count` random steps of `also`, never both a sort and a transpose."""
    left_out = draw.choice(EITHER)
    return [draw.choice([step for step in also if step != left_out]) for _ in range(count)]


def counted(steps: Chain) -> dict[str, int]:
    """Return how many generated kernels run for the program, and how many library calls are left."""
    found = _lowered(tuple(steps))
    return {"kernels": found.launches, "calls": found.library_calls}


@lru_cache(maxsize=1024)
def _lowered(steps: Chain) -> CompiledCost:
    return lowered(program_of(steps), inputs_of(7))
