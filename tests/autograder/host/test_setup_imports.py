"""Which names of a set-up cell an answer gets."""

import pytest

from autograder.host.setup_imports import absent_names, imports, used_setup

SETUP = """\
import math
import os.path
import numpy as np
from itertools import chain, pairwise as pairs

from course_lib import training
from course_lib.graph import cost

torch.manual_seed(0);
"""


def test_every_name_has_a_line_of_its_own_and_other_statements_are_left_out() -> None:
    assert [(each.name, each.module, each.line) for each in imports(SETUP)] == [
        ("math", "math", "import math"),
        ("os", "os.path", "import os.path"),
        ("np", "numpy", "import numpy as np"),
        ("chain", "itertools.chain", "from itertools import chain"),
        ("pairs", "itertools.pairwise", "from itertools import pairwise as pairs"),
        ("training", "course_lib.training", "from course_lib import training"),
        ("cost", "course_lib.graph.cost", "from course_lib.graph import cost"),
    ]


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        ("def f(): return math.pi", ["import math"]),
        ("def f(): return aftermath, chains", []),
        ("x = os.path.join(np)", ["import os.path", "import numpy as np"]),
        ("x: 'chain'", ["from itertools import chain"]),
        ("ｍａｔｈ.pi", ["import math"]),  # Python normalises names by NFKC
        ("training.loss(cost)", ["from course_lib import training", "from course_lib.graph import cost"]),
        ("+" * 100_000 + "math", ["import math"]),
        ("", []),
    ],
)
def test_an_answer_gets_the_names_that_occur_in_it(answer: str, lines: list[str]) -> None:
    assert used_setup(SETUP, (), [answer]).splitlines() == lines
    assert used_setup(SETUP, (), ["", answer]).splitlines() == lines


def test_a_masked_package_and_the_grader_are_absent() -> None:
    setup = f"{SETUP}from autograder.practice import hint\n"
    assert absent_names(setup, ("course_lib.graph", "course_lib.training")) == {
        "training": "course_lib.training",
        "cost": "course_lib.graph",
        "hint": "autograder",
    }
    assert used_setup(setup, ("course_lib.graph",), ["cost hint training"]) == "from course_lib import training\n"


def test_a_package_whose_name_only_begins_like_a_masked_one_is_there() -> None:
    assert absent_names("from course_lib.graphs import cost", ("course_lib.graph",)) == {}
