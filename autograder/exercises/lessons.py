"""The lessons in order, and the functions that form the ids of exercises, such as `05_bias_silu_pass`."""

from pathlib import Path

PACKAGE = "autograder.exercises"
HIDDEN = f"{PACKAGE}.hidden"

LESSONS: tuple[str, ...] = (
    "start_here",
    "transformer",
    "measuring",
    "torchscript",
    "fx_capture",
    "fx_rewrite",
    "schedules",
    "dynamo",
    "aot_autograd",
    "inductor",
    "backends",
    "custom_operators",
    "triton_kernels",
    "attention",
    "shipping",
    "launch_overhead",
    "lightning_training",
    "capstone",
)
"""The packages with exercises; a lesson's index here is its number and the number of its notebook."""


def exercise_id(module: str) -> str:
    """Return the id of the exercise in a module, from the lesson's number and the module's name.

    >>> exercise_id("autograder.exercises.fx_rewrite.bias_silu_pass")
    '05_bias_silu_pass'
    """
    lesson, name = module.split(".")[-2:]
    return f"{LESSONS.index(lesson):02d}_{name}"


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
    files = (path for lesson in LESSONS for path in (folder / lesson).glob("[a-z]*.py"))
    return dict(sorted((exercise_id(f"{path.parent.name}.{path.stem}"), path) for path in files))
