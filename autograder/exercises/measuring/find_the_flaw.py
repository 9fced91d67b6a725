"""Exercise 02.1: repair benchmark scripts for a device that works asynchronously.

The answer gets a script and returns a script. The host runs it on a simulated device with secret delays and reads the
clock itself.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.value import ValueAnswer
from course_lib.errors import TimingError
from course_lib.timing import Flaw, SimulatedDevice
from course_lib.timing.simulation import Window

PROGRAMS = ("gelu", "matmul", "softmax", "layer_norm", "dropout", "gather", "transpose", "reduce")
TOLERANCE = 0.1  # of the true time; launches in a correct script add less than 4 percent
MAX_STEPS = 500

SAYS = {
    Flaw.COMPILED: "A program is launched for the first time inside a window, so its compilation is timed. "
    "Launch every program once before the first clock.",
    Flaw.UNFINISHED: "The clock is read while the device still works: a launch returns at once. "
    "Wait with sync before the second clock.",
    Flaw.DRAWN: "An input is made inside a window, so making it is timed. Draw before the first clock of the window.",
    Flaw.DROPPED: "Nobody uses a result, so the compiler drops the launch and you time nothing. "
    "Put a use between each launch and the second clock.",
    Flaw.EARLIER: "The device is still at work on something else when a window begins, and you wait for that, too. "
    "Wait with sync before the first clock as well.",
    Flaw.CACHED: "A program reads an input that it read before, and finds it in the cache. "
    "Draw a new input for every window.",
}


def device(draw: Draw) -> SimulatedDevice:
    """Return a device with random delays, all large enough to be noticed."""
    programs = {name: float(draw.integer(500, 1500)) for name in PROGRAMS}
    return SimulatedDevice(
        programs,
        launch_us=draw.integer(30, 70) / 10,
        draw_us=float(draw.integer(900, 2500)),
        use_us=draw.integer(10, 40) / 10,
        compile_us=float(draw.integer(15_000, 80_000)),
        cached_share=draw.integer(30, 60) / 100,
    )


def script(windows: Sequence[Sequence[str]], flaws: frozenset[Flaw] = frozenset()) -> list[str]:
    """Return a script that measures these programs, window by window, with the given flaws in every window."""
    steps = ["draw"]
    if Flaw.COMPILED not in flaws:
        for name in dict.fromkeys(name for window in windows for name in window):
            steps += [f"launch {name}", "use"]
    for window in windows:
        if not flaws & {Flaw.CACHED, Flaw.DRAWN}:
            steps.append("draw")
        if Flaw.EARLIER not in flaws:
            steps.append("sync")
        steps += ["clock", *(["draw"] if Flaw.DRAWN in flaws else [])]
        for name in window:
            steps += [f"launch {name}", *(["use"] if Flaw.DROPPED not in flaws else [])]
        steps += ["clock", "sync"] if Flaw.UNFINISHED in flaws else ["sync", "clock"]
    return steps


def mended(flaws: Sequence[Flaw], *, sizes: tuple[int, ...] = (1, 1, 1)) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer takes these flaws out of two scripts.

    `sizes` says how many programs the windows have. Another flaw in the answer's script is counted by its own check. So
    is one of several `flaws` that the answer leaves in when it stands alone, in windows of one program.
    """

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for _ in range(2):
            windows = [draw.sample(PROGRAMS, size) for size in sizes]
            on = device(draw)
            alone = [[name] for name in draw.sample(PROGRAMS, len(sizes))]  # as in the check that counts one flaw
            left = [f for f in flaws if len(flaws) > 1 and not _mends(answer, f, alone, on)]
            counted = set(flaws) - set(left if len(left) == 1 else ())
            broken = script(windows, frozenset(flaws))
            require_sound(answer.ask(broken), broken, windows, on, counted)

    return run


def _mends(answer: ValueAnswer, flaw: Flaw, windows: Sequence[Sequence[str]], on: SimulatedDevice) -> bool:
    broken = script(windows, frozenset({flaw}))
    try:
        require_sound(answer.ask(broken), broken, windows, on, {flaw})
    except CheckFailedError:
        return False
    return True


def require_sound(
    found: Any, broken: list[str], windows: Sequence[Sequence[str]], on: SimulatedDevice, counted: Collection[Flaw]
) -> None:
    """Check that the script `found` measures what `broken` was meant to measure, without a flaw that is `counted`."""
    if not isinstance(found, list) or not all(isinstance(step, str) for step in found):
        raise CheckFailedError(f"mend returned {type(found).__name__}; return a list of steps, each a text.")
    if len(found) > MAX_STEPS:
        raise CheckFailedError(f"The script has {len(found)} steps; {MAX_STEPS} are enough for any of these.")
    try:
        measured = on.run(found)
    except TimingError as error:
        raise CheckFailedError(str(error).replace("SimulatedDevice.run", "The device")) from None
    if [list(window.programs) for window in measured] != [list(window) for window in windows]:
        raise CheckFailedError(
            f"Mended, {_shown(broken)} measures {[list(w.programs) for w in measured]}; it is meant to measure "
            f"{[list(w) for w in windows]}. {_other_windows(measured, windows)}"
        )
    wrong = next((w for w in measured if _is_off(w) and w.flaws & set(counted)), None)
    if wrong is not None:
        says = next(sentence for flaw, sentence in SAYS.items() if flaw in wrong.flaws & set(counted))
        raise CheckFailedError(
            f"{' and '.join(wrong.programs)} takes {wrong.true_us:.0f} µs, and your script measures "
            f"{wrong.measured_us:.0f} µs. {says}"
        )


def _other_windows(measured: Sequence[Window], windows: Sequence[Sequence[str]]) -> str:
    """Return a sentence about what became of the windows."""
    found, expected = [list(window.programs) for window in measured], list(map(list, windows))
    flat, wanted = [name for w in found for name in w], [name for w in expected for name in w]
    if flat == wanted and len(found) > len(expected):
        return "A window was split: all programs between two clocks are measured together, by one pair of clocks."
    if flat == wanted:
        return "Windows were joined, or cut in other places: each pair of clocks measures its own programs."
    if sorted(found) == sorted(expected):
        return "The windows stand in another order; keep that of the script."
    if sorted(flat) == sorted(wanted):
        return "The programs are launched in another order; keep that of the script, window by window."
    if missing := [name for name in wanted if flat.count(name) < wanted.count(name)]:
        return f"A launch is missing between the clocks, that of {missing[0]}: measure each program as often as before."
    return "There are more launches between the clocks than before: launch for the first time before the first clock."


def _is_off(window: Window) -> bool:
    return abs(window.measured_us - window.true_us) > TOLERANCE * window.true_us


def _shown(steps: list[str]) -> str:
    text = ", ".join(steps)
    return f"[{text}]" if len(text) <= 200 else f"[{text[:197]}...]"


EXERCISE = Exercise(
    title="Find the flaw",
    kind=Kind.VALUE,
    entry_point="mend",
    points=12,
    # The device of `timing` would judge any script that is tried, as the check does; `profiling` imports it.
    masked=("course_lib.timing", "course_lib.profiling"),
    wall_s=20,
    hints=(
        "Take the sound window of this notebook and hold it beside a broken one. Which of the five kinds of step are "
        "missing, and which stand on the wrong side of a clock?",
        "Read the script once and note, for each pair of clocks, which programs are launched between them. Then write "
        "a new script from these notes alone.",
        "Before the first clock, launch every program once and use it. A window is: draw, sync, clock, then launch and "
        "use for each of its programs, sync, clock.",
    ),
    checks=(
        Check("a clock that is read too early", "waiting", 2, mended([Flaw.UNFINISHED])),
        Check("a first call that compiles", "warm-up", 1.5, mended([Flaw.COMPILED])),
        Check("inputs that are made between the clocks", "inputs", 1.5, mended([Flaw.DRAWN])),
        Check("results that nobody uses", "results", 2, mended([Flaw.DROPPED])),
    ),
)
