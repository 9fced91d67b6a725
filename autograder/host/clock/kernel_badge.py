"""The badge for the bandwidth of an answer's kernels: compiled and timed on a GPU, and no points.

Where no GPU measures, the badge is not assessed.
"""

import dataclasses
from collections.abc import Mapping

from autograder.host.bandwidth import MOST_SHARE, SHARES
from autograder.host.channel import MalformedAnswerError
from autograder.host.clock.contest import GRADED, NEEDS_GPU, one_at_a_time, problems
from autograder.host.clock.gpu import CUDA, Gpu
from autograder.host.clock.kernel_contest import WINDOW_US, KernelContest, Shares
from autograder.host.clock.trial import WrongTimedOutputError, can_be_timed
from autograder.host.clock.verdict import Assessment, assess, enough
from autograder.host.draw import Draw
from autograder.host.exercise import Exercise
from autograder.host.kinds.triton import TritonAnswer
from autograder.host.records import Badge, KernelRecord
from autograder.host.sandbox import Sandbox
from autograder.host.session import AnswerFailedError
from autograder.protocol import ProtocolError
from course_lib.timing import Verdict, decide_speedup
from course_lib.timing.decisions import CONFIDENCE
from course_lib.timing.summaries import median_interval

SECRET = "measured bandwidth"  # names the draw of inputs
NOT_RIGHT = "Kernels are timed if every check of the answer passed."
NO_COPY = "The copy itself could not be timed on this GPU."
REVIEW = "There is no badge until a person has looked at the answer."
LEAST: Mapping[Badge, str] = {badge: f"{share:.0%}".replace("%", " %") for badge, share in SHARES.items()}


def time_kernels(
    exercise: Exercise, answer: TritonAnswer, *, sandbox: Sandbox, seed: int, right: bool, gpu: Gpu = CUDA
) -> KernelRecord | None:
    """Compile and time the answer's kernels, and return the badge; None for an exercise without one.

    `right` says that every check passed. The answer's text is already checked, and no Python of the student runs.
    """
    if exercise.bandwidth is None:
        return None
    if not sandbox.has_cuda:
        return KernelRecord(False, NEEDS_GPU)
    if not right:
        return KernelRecord(False, NOT_RIGHT)
    load = answer.timed(exercise.bandwidth)
    draw = Draw(seed, exercise.id, SECRET)
    of = KernelContest(exercise.bandwidth, load, sandbox, exercise.wall_s, draw, gpu)
    try:
        return measured(of)
    except WrongTimedOutputError as error:
        return KernelRecord(True, str(error))
    except AnswerFailedError as error:
        return KernelRecord(True, error.message) if can_be_timed(of.control) else KernelRecord(False, NO_COPY)
    except (MalformedAnswerError, ProtocolError) as error:
        return KernelRecord(True, f"The kernels could not be timed: {error}")


def measured(of: KernelContest) -> KernelRecord:
    """Measure by the rules of `verdict`, and return the badge."""
    shares = Shares()
    plan = dataclasses.replace(GRADED, window_us=WINDOW_US, enough=enough(shares))
    with one_at_a_time():
        result = assess(lambda: of.trial(plan), of.control, shares, lambda: problems("cuda", of.gpu))
    pairs = result.trial.pairs
    low, high = median_interval([pair.ratio for pair in pairs], CONFIDENCE)
    flags = tuple(_flags(result))
    badge = None if flags else _badge(result)
    return KernelRecord(
        assessed=result.verdict in (Verdict.PASS, Verdict.FAIL),
        reason=_reason(result, flags),
        badge=badge,
        share=result.trial.ratio,
        share_low=low,
        share_high=high,
        bytes_moved=of.of.bytes_moved,
        answer_us=result.trial.answer_us,
        copy_us=result.trial.baseline_us,
        flags=flags,
    )


def _badge(result: Assessment) -> Badge | None:
    if result.verdict is not Verdict.PASS:
        return None
    if result.full.verdict is Verdict.PASS:
        return Badge.GOLD
    silver = decide_speedup(result.trial.pairs, SHARES[Badge.SILVER])
    return Badge.SILVER if silver.verdict is Verdict.PASS else Badge.BRONZE


def _flags(result: Assessment) -> list[str]:
    share = max(result.passing.ratio, result.full.ratio, result.trial.ratio)
    if share <= MOST_SHARE or result.verdict is Verdict.ENVIRONMENT:
        return []
    return [f"faster than memory allows: the kernels move their bytes at {share:.2f} of a copy's bandwidth"]


def _reason(result: Assessment, flags: tuple[str, ...]) -> str:
    if flags:
        return f"{_capitalised(flags[0])}. {REVIEW}"
    if result.verdict is Verdict.ENVIRONMENT:
        return _capitalised(result.passing.reason)
    if result.verdict is Verdict.INCONCLUSIVE:
        return f"The times were too close to {LEAST[Badge.BRONZE]} to say whether there is a badge."
    asked = ", ".join(f"{each} from {at}" for each, at in LEAST.items())
    return f"Badges by the share of a copy's bandwidth: {asked}."


def _capitalised(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
