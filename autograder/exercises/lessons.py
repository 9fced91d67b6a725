"""The lessons in order, and the functions that form the ids of exercises, such as `05_bias_silu_pass`."""

from pathlib import Path

PACKAGE = "autograder.exercises"
HIDDEN = f"{PACKAGE}.hidden"

LESSONS: dict[int, str] = {
    0: "start_here",
    1: "transformer",
    2: "measuring",
    3: "torchscript",
    4: "fx_capture",
    5: "fx_rewrite",
    6: "schedules",
    7: "dynamo",
    8: "aot_autograd",
    9: "inductor",
    10: "backends",
    11: "custom_operators",
    12: "triton_kernels",
    13: "attention",
    14: "shipping",
    15: "launch_overhead",
    16: "lightning_training",
    17: "capstone",
}
"""The packages with exercises, by the number of their lesson, which is that of its notebook."""


def exercise_id(module: str) -> str:
    """Return the id of the exercise in a module, from the lesson's number and the module's name.

    >>> exercise_id("autograder.exercises.fx_rewrite.bias_silu_pass")
    '05_bias_silu_pass'
    """
    lesson, name = module.split(".")[-2:]
    (number,) = (number for number, package in LESSONS.items() if package == lesson)
    return f"{number:02d}_{name}"


def module_name(exercise: str, *, hidden: bool = False) -> str:
    """Return the module of the exercise with this id, or of its hidden part if `hidden` is set.

    >>> module_name("05_bias_silu_pass", hidden=True)
    'autograder.exercises.hidden.fx_rewrite.bias_silu_pass'
    """
    name = exercise.split("_", 1)[1]
    return f"{HIDDEN if hidden else PACKAGE}.{lesson_of(exercise)}.{name}"


def lesson_of(exercise: str) -> str:
    """Return the package of an exercise's lesson.

    >>> lesson_of("05_bias_silu_pass")
    'fx_rewrite'
    """
    return LESSONS[int(exercise.split("_", 1)[0])]


def exercise_files() -> dict[str, Path]:
    """Return the file of each exercise by its id, in order of the ids."""
    folder = Path(__file__).parent
    files = (path for lesson in LESSONS.values() for path in (folder / lesson).glob("[a-z]*.py"))
    return dict(sorted((exercise_id(f"{path.parent.name}.{path.stem}"), path) for path in files))
