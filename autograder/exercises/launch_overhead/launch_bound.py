"""Exercise 15.1: predict whether launches or bytes limit a program, from counts."""

from collections.abc import Callable

from autograder.exercises.questions import Question, kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.value import ValueAnswer

OUTCOMES = ("launches", "bytes")
RULE = (
    "Compare launches · launch_us, where a replay is one launch, with the sum of all bytes; 1 GB/s is 1,000 bytes a "
    "microsecond."
)

known = kept(__name__, "known")


def question_of(draw: Draw, ratio: float, *, share: float = 0.0, replayed: bool = False) -> Question:
    """Return a program whose bytes take `ratio` times as long as its launches, of which a replay has one.

    `share` is the part of all bytes that one kernel moves; the others move about as many bytes each.
    """
    count, launch_us, bandwidth = draw.integer(24, 60), draw.choice((2.5, 4, 5, 8)), draw.choice((500, 936, 2039, 3350))
    total = (1 if replayed else count) * launch_us * ratio * bandwidth * 1e3
    weights = [draw.integer(80, 120) for _ in range(count)]
    launches = [int(total * (1 - share) * weight / sum(weights)) for weight in weights]
    launches[draw.integer(0, count - 1)] += int(total * share)
    return {"launches": launches, "launch_us": launch_us, "bandwidth_gb_s": bandwidth, "replayed": replayed}


def predicts(*cases: tuple[float, float, bool]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check of questions with these ratios, shares and ways to run, in random order."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for ratio, share, replayed in draw.sample(cases, len(cases)):
            require_predicted(answer, question_of(draw, ratio, share=share, replayed=replayed))

    return run


def require_predicted(answer: ValueAnswer, question: Question) -> None:
    """Raise `CheckFailedError` unless the answer to one question is right."""
    found, about = answer.ask(question), known(question)
    if type(found) is not str or found not in OUTCOMES:
        raise CheckFailedError(f"bound_by returned {repr(found)[:80]}; expected one of {', '.join(OUTCOMES)}.")
    if found != about["right"]:
        launches, way = question["launches"], "replayed" if question["replayed"] else "eager"
        raise CheckFailedError(
            f"{len(launches)} kernels that move {sum(launches):,} bytes, {way}, {question['launch_us']} µs a launch, "
            f"{question['bandwidth_gb_s']} GB/s: predicted {found!r}, and it is {about['right']!r}. "
            f"{_reason(found, about['wrong'])}"
        )


def _reason(found: str, wrong: list[list[str]]) -> str:
    """Return the mistake that explains the answer; the whole rule if several do, since there are two answers only."""
    reasons = [says for value, says in wrong if value == found]
    return reasons[0] if len(reasons) == 1 else RULE


EVEN = ((0.4, 0.0, False), (0.7, 0.0, False), (1.5, 0.0, False), (3.0, 0.0, False))
UNEVEN = ((0.3, 0.6, False), (0.6, 0.8, False), (1.4, 0.9, False), (2.0, 0.6, False))
REPLAYED = ((1.4, 0.0, True), (15.0, 0.4, True), (0.2, 0.0, True), (0.7, 0.5, True))
NEAR = ((0.93, 0.0, False), (0.96, 0.5, False), (1.05, 0.0, False), (1.08, 0.5, False))

EXERCISE = Exercise(
    title="Launches or bytes?",
    kind=Kind.VALUE,
    entry_point="bound_by",
    points=5,
    wall_s=20,
    hints=(
        "Compute two times in µs: what the host needs to start everything, and what the device needs for all bytes.",
        "1 GB/s is 1,000 bytes in a microsecond. Sum the bytes of all kernels.",
        "A replay is one launch, however many kernels it starts. The longer of the two times decides.",
    ),
    checks=(
        Check("kernels of one size", "eager", 0.5, predicts(*EVEN)),
        Check("one large kernel among small ones", "eager", 1, predicts(*UNEVEN)),
        Check("close together", "eager", 1.5, predicts(*NEAR)),
    ),
)
