"""Hidden checks and controls of exercise 15.1."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.launch_overhead.launch_bound import REPLAYED, predicts
from autograder.exercises.questions import Known, Question
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values


def _longer(question: Question, launches: float, moved: float, *, unit: float = 1e3) -> str:
    """Return what takes longer: this many launches, or to move this many bytes."""
    device_us = moved / (question["bandwidth_gb_s"] * unit)
    return "launches" if launches * question["launch_us"] > device_us else "bytes"


def right(question: Question) -> str:
    """Return what limits the program."""
    count = 1 if question["replayed"] else len(question["launches"])
    return _longer(question, count, sum(question["launches"]))


MISCONCEPTIONS = (
    Misconception(
        lambda q: _longer(q, 1 if q["replayed"] else len(q["launches"]), sum(q["launches"]), unit=2**30 / 1e6),
        "A GB is 10^9 bytes; 2^30 bytes are a GiB.",
    ),
    Misconception(
        lambda q: _longer(q, len(q["launches"]), sum(q["launches"])),
        "A replay starts all kernels by one launch.",
    ),
    Misconception(
        lambda q: _longer(q, 1 if q["replayed"] else len(q["launches"]), max(q["launches"])),
        "The largest kernel alone decides nothing: launches and bytes are sums over the program.",
    ),
    Misconception(
        lambda q: _longer(q, 1, sum(q["launches"])), "Each kernel of an eager program has a launch of its own."
    ),
    Misconception(
        lambda q: _longer(q, 1 if q["replayed"] else len(q["launches"]), sum(q["launches"]), unit=1e6),
        "1 GB/s is 1,000 bytes a microsecond, not a million.",
    ),
    Misconception(
        lambda q: _longer(q, 1 if q["replayed"] else len(q["launches"]), sum(q["launches"]), unit=1),
        "1 GB/s is 1,000 bytes a microsecond, not one.",
    ),
)


def known(question: Question) -> Known:
    """Return what limits the program, and the answers of known mistakes."""
    return {"right": right(question), "wrong": wrong_values(question, MISCONCEPTIONS)}


ANSWERS = Answers(__name__)
ONE_LAUNCH = "A replay costs the host one launch."

HIDDEN = HiddenPart(
    checks=(Check("replayed", "replay", 2, predicts(*REPLAYED)),),
    right_here={"text": "the answer is a text"},
    controls=(
        ANSWERS.reference(5),
        ANSWERS.file("seconds", 5),
        ANSWERS.file("kernel by kernel", 5),
        ANSWERS.file("largest of two", 5),
        ANSWERS.edited("turned round", 5, ("host_us > device_us", "not host_us <= device_us")),
        ANSWERS.edited("a ratio", 5, ("host_us > device_us", "host_us / device_us > 1")),
        ANSWERS.edited(
            "eager first",
            5,
            (
                "1 if program['replayed'] else len(program['launches'])",
                "len(program['launches']) if not program['replayed'] else 1",
            ),
        ),
        ANSWERS.edited("a power of ten", 5, ("* 1000", "* 10 ** 3")),
        ANSWERS.edited(
            "the mean kernel",
            0,
            ("sum(program['launches'])", "sum(program['launches']) / len(program['launches'])"),
        ),
        ANSWERS.edited("gigabits a second", 0, ("* 1000", "* 125")),
        *(
            Control(f"always {word}", f"def bound_by(program):\n    return {word!r}\n", 0)
            for word in ("launches", "bytes")
        ),
        ANSWERS.edited(
            "replays launch each kernel",
            3,
            ("1 if program['replayed'] else ", ""),
            trap=ONE_LAUNCH,
        ),
        ANSWERS.edited("a replay of two launches", 3, ("1 if program", "2 if program"), trap=ONE_LAUNCH),
        ANSWERS.edited("one launch", 2, ("1 if program['replayed'] else len(program['launches'])", "1")),
        ANSWERS.edited("the largest kernel", 1, ("sum(", "max("), below=False),
        ANSWERS.edited("gigabytes a second are bytes a microsecond", 0, ("* 1000", "")),
        ANSWERS.edited("a million bytes", 0, ("* 1000", "* 1000000")),
        ANSWERS.edited("turned words", 0, ("host_us > device_us", "host_us < device_us")),
        ANSWERS.edited("clearly longer", 3.5, ("host_us > device_us", "host_us > 1.2 * device_us")),
        ANSWERS.edited("GiB a second", 3.5, ("* 1000", "* 1073.741824")),
        Control(
            "many kernels",
            "def bound_by(program):\n    return 'launches' if len(program['launches']) > 40 else 'bytes'\n",
            3,
            below=True,
        ),
    ),
)
