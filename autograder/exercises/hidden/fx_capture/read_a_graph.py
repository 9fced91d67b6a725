"""Hidden checks and controls of exercise 04.1."""

from autograder.exercises.fx_capture import read_a_graph as visible
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart


def _large(draw: Draw) -> list[list[visible.Row]]:
    return visible.telling(lambda: [visible.random_graph(draw, draw.integer(20, 60)) for _ in range(8)])


def _all_live(draw: Draw) -> list[list[visible.Row]]:
    """Return graphs in which nothing is dead, and one in which nearly everything is."""
    live = [visible.random_graph(draw, n, dead=False) for n in (5, 30)]
    return [*live, visible.random_graph(draw, 40)]


def _check(part: str, points: float) -> Check:
    return Check(f"{part} of large graphs", part.replace("_", " "), points, visible.question_right(part, _large))


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        _check("two_users", 0.65),
        _check("dead", 0.65),
        Check("dead nodes, none or nearly all", "dead", 0.65, visible.question_right("dead", _all_live)),
        _check("longest_path", 0.65),
    ),
    controls=(
        ANSWERS.reference(6),
        ANSWERS.edited(
            "the longest chain to anywhere",
            4.65,
            ("next((depth.get(row['name'], 0) for row in rows if row['op'] == 'output'), 0)", "max(depth.values())"),
        ),
        Control(
            "strings",
            "def read_graph(rows):\n"
            "    return dict.fromkeys(['inputs', 'leaf_modules', 'two_users', 'dead', 'longest_path'], 'x')\n",
            0,
        ),
    ),
)
