"""Exercise 15.3: find in two recordings of a program what would go wrong if it were captured and replayed."""

from collections.abc import Callable
from typing import Any

from autograder.exercises.questions import Question
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.value import ValueAnswer

SAYS = {
    "host read": "The host waits for a value there: host_read is True.",
    "random state": "It draws from a generator of its own: own_generator is True.",
    "stale number": "A Python number there differs between the calls; a replay keeps the first.",
    "two shapes": "The shapes differ between the calls; a graph has one.",
    "rebound input": "It reads memory from outside that differs between the calls; a replay reads the first.",
    "first call only": "Only the first call runs it, and a replay would run it each time.",
}
FINE = (
    "Results of the call itself may lie anywhere, state may be created by the first call, and a loop runs a line often."
)
Pair = tuple[int, int]
Row = tuple[int, str]


class Tape:
    """Two recorded calls of one program, line by line, and the violations that were put in."""

    def __init__(self, draw: Draw) -> None:
        self.draw, self.line = draw, draw.integer(2, 9)
        self.harmless = False  # whether statements leave out what violates a rule
        self.first: list[Question] = []
        self.second: list[Question] = []
        self.violations: set[Row] = set()
        self._used: set[int] = set()
        self.latest = self.outside()
        self.shape = [draw.integer(2, 9), draw.integer(2, 9)]

    def new(self) -> int:
        """Return an address that nothing else has."""
        address = self.draw.integer(1 << 20, 1 << 30) * 64
        while address in self._used:
            address += 64
        self._used.add(address)
        return address

    def outside(self) -> Pair:
        """Return memory that both calls share."""
        return (address := self.new(), address)

    def temporary(self) -> Pair:
        """Return memory that each call allocates."""
        return self.new(), self.new()

    def elsewhere(self) -> Pair:
        """Return memory from outside that lies elsewhere in the second call, unless the statement is harmless."""
        return self.outside() if self.harmless else self.temporary()

    def launch(self, operator: str, reads: tuple[Pair, ...], writes: tuple[Pair, ...], **changes: Any) -> None:
        """Record one launch in both calls, or in one if `only` is 0; `second` changes what the second call holds."""
        only, second = changes.pop("only", None), changes.pop("second", {})
        if self.harmless:
            only, second, changes = None, {}, changes | {"own_generator": False}
        for call, launches in enumerate((self.first, self.second)):
            launch = {
                "line": self.line,
                "operator": f"aten.{operator}",
                "reads": [pair[call] for pair in reads],
                "writes": [pair[call] for pair in writes],
                "shapes": [list(self.shape) for _ in reads],
                "numbers": [],
                "memory_bytes": 4 * self.shape[0] * self.shape[1] * (len(reads) + len(writes)),
                "host_read": False,
                "own_generator": False,
            }
            if only in (None, call):
                launches.append(launch | changes | (second if call else {}))

    def wrong(self, category: str) -> None:
        """Note that this line violates a rule, unless the statement is harmless."""
        if not self.harmless:
            self.violations.add((self.line, category))

    def other_shapes(self, count: int) -> list[list[int]]:
        """Return the shapes of `count` arguments with another first size."""
        return [[self.shape[0] + 1, self.shape[1]] for _ in range(count)]


Statement = Callable[[Tape], None]


def plain(tape: Tape) -> None:
    """Compute from the latest result, a parameter and a constant number."""
    out = tape.temporary()
    tape.launch("add.Tensor", (tape.latest, tape.outside()), (out,), numbers=[tape.draw.integer(1, 5)])
    tape.latest = out


def in_place(tape: Tape) -> None:
    """Write state that both calls share."""
    state = tape.outside()
    tape.launch("add_.Tensor", (state, tape.latest), (state,))


def loop(tape: Tape) -> None:
    """Run one line three times, with a number that counts."""
    for number in (1, 2, 3):
        out = tape.temporary()
        tape.launch("mul.Tensor", (tape.latest,), (out,), numbers=[number])
        tape.latest = out


def host_read(tape: Tape) -> None:
    """Read a value on the host."""
    tape.launch("_local_scalar_dense.default", (tape.latest,), (), host_read=True)
    tape.wrong("host read")


def own_generator(tape: Tape) -> None:
    """Draw from a generator of its own."""
    tape.launch("bernoulli_.float", (tape.latest,), (tape.latest,), own_generator=True, numbers=[0.5])
    tape.wrong("random state")


def stale(tape: Tape) -> None:
    """Use a number that the second call has changed."""
    out, number = tape.temporary(), tape.draw.integer(1, 9) / 10
    tape.launch("mul.Tensor", (tape.latest,), (out,), numbers=[number], second={"numbers": [number / 2]})
    tape.latest = out
    tape.wrong("stale number")


def stale_in_a_loop(tape: Tape) -> None:
    """Run one line three times; the last number differs between the calls."""
    for number, later in ((1, 1), (2, 2), (3, 4)):
        tape.launch("mul_.Tensor", (tape.latest,), (tape.latest,), numbers=[number], second={"numbers": [later]})
    tape.wrong("stale number")


def shapes(tape: Tape) -> None:
    """Compute on a batch of another size."""
    out = tape.temporary()
    tape.launch("gelu.default", (tape.latest,), (out,), second={"shapes": tape.other_shapes(1)})
    tape.latest = out
    tape.wrong("two shapes")


def second_shapes(tape: Tape) -> None:
    """Add a tensor whose shape alone differs in the second call."""
    out, other = tape.temporary(), tape.other_shapes(1)
    tape.launch("sub.Tensor", (tape.latest, tape.outside()), (out,), second={"shapes": [list(tape.shape), *other]})
    tape.latest = out
    tape.wrong("two shapes")


def traded(tape: Tape) -> None:
    """Use two numbers that change places."""
    low, high = tape.draw.integer(1, 4), tape.draw.integer(5, 9)
    out, second = tape.temporary(), {"numbers": [high, low]}
    tape.launch("clamp.default", (tape.latest,), (out,), numbers=[low, high], second=second)
    tape.latest = out
    tape.wrong("stale number")


def rebound(tape: Tape) -> None:
    """Read an input that lies elsewhere in the second call."""
    out = tape.temporary()
    tape.launch("mm.default", (tape.latest, tape.elsewhere()), (out,))
    tape.latest = out
    tape.wrong("rebound input")


def swapped(tape: Tape) -> None:
    """Read two buffers that the caller swaps between the calls."""
    one, other = tape.outside(), tape.outside()
    pairs = (one, other) if tape.harmless else ((one[0], other[0]), (other[0], one[0]))
    for pair in pairs:
        tape.launch("sub.Tensor", (tape.latest, pair), (tape.temporary(),))
        tape.wrong("rebound input")
        tape.line += 1


def swapped_in_a_loop(tape: Tape) -> None:
    """Read two buffers by one line, in a loop; the caller swaps them between the calls."""
    one, other = tape.outside(), tape.outside()
    for pair in (one, other) if tape.harmless else ((one[0], other[0]), (other[0], one[0])):
        tape.launch("div.Tensor", (tape.latest, pair), (tape.temporary(),))
    tape.wrong("rebound input")


def written_in_place(tape: Tape) -> None:
    """Write, in place, a buffer that lies elsewhere in the second call."""
    buffer = tape.elsewhere()
    tape.launch("add_.Tensor", (buffer, tape.latest), (buffer,))
    tape.wrong("rebound input")


def fed_back(tape: Tape) -> None:
    """Read, in the second call, what the first call computed here."""
    out, start = tape.temporary(), tape.new()
    before = (start, start) if tape.harmless else (start, out[0])
    tape.launch("tanh.default", (before,), (out,))
    tape.wrong("rebound input")


def cached(tape: Tape) -> None:
    """Create a constant in the first call, and read it in both."""
    constant, out = tape.outside(), tape.temporary()
    tape.launch("zeros.default", (), (constant,), only=0)
    tape.wrong("first call only")
    tape.line += 1
    tape.launch("mul.Tensor", (tape.latest, constant), (out,))
    tape.latest = out


def created(tape: Tape) -> None:
    """Create state in the first call, and use it in both."""
    state = tape.outside()
    tape.launch("zeros.default", (), (state,), only=0)
    tape.wrong("first call only")
    tape.line += 1
    tape.launch("add_.Tensor", (state, tape.latest), (state,))


def harmless(statement: Statement) -> Statement:
    """Return the statement with the same operators, and nothing that violates a rule."""

    def run(tape: Tape) -> None:
        tape.harmless = True
        statement(tape)
        tape.harmless = False

    return run


CLEAN: tuple[Statement, ...] = (plain, in_place, loop)
VIOLATIONS = (own_generator, stale, stale_in_a_loop, traded, shapes, second_shapes, rebound, swapped, swapped_in_a_loop)
TWINS = tuple(map(harmless, (*VIOLATIONS, written_in_place, fed_back, created, cached)))
"""So an operator's name says nothing. A host read has no twin: its operator always reads."""


def program(draw: Draw, *violations: Statement) -> Tape:
    """Return a program with these violations among right statements, in random order."""
    statements = (*violations, *CLEAN, *TWINS)
    tape = Tape(draw)
    for index in draw.sample(range(len(statements)), len(statements)):
        statements[index](tape)
        tape.line += draw.integer(1, 3)
    return tape


def finds(*programs: tuple[Statement, ...]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the violations of each program are found, and nothing else."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for violations in draw.sample(programs, len(programs)):
            require_found(answer, program(draw, *violations))

    return run


def require_found(answer: ValueAnswer, tape: Tape) -> None:
    """Raise `CheckFailedError` unless exactly the violations of one program are reported."""
    found = answer.ask({"first": tape.first, "second": tape.second})
    rows = _rows(found)
    if missed := sorted(tape.violations - rows):
        line, category = missed[0]
        raise CheckFailedError(f"Line {line} is a {category!r} and was not reported. {SAYS[category]}")
    if more := sorted(rows - tape.violations):
        line, category = more[0]
        raise CheckFailedError(f"Line {line} was reported as {category!r}, and it is fine. {FINE}")


def _rows(found: Any) -> set[Row]:
    """Return the rows of an answer; raises `CheckFailedError` if it is no list of rows."""
    rows = set()
    for row in found if isinstance(found, list) else [found]:
        if not (isinstance(row, list) and [type(each) for each in row] == [int, str] and row[1] in SAYS):
            raise CheckFailedError(
                f"{repr(row)[:80]} is no row. Return a list of rows [line, category], such as [4, 'host read']; the "
                f"categories are {', '.join(SAYS)}."
            )
        rows.add((row[0], row[1]))
    return rows


EXERCISE = Exercise(
    title="Find what breaks a replay",
    kind=Kind.VALUE,
    entry_point="find_violations",
    points=12,
    wall_s=20,
    hints=(
        "Two categories stand in the launch itself. For the others, compare each launch with that of the other call: "
        "the same line, and the same place among the launches of this line.",
        "Walk through a call and keep all that was written so far: what a launch reads besides comes from outside.",
        "Memory that a line of the first call alone wrote is state; the second call may read it from outside.",
    ),
    checks=(
        Check("host reads and generators", "the launch itself", 1.5, finds((host_read,), (own_generator, host_read))),
        Check("numbers and shapes", "between two calls", 1.5, finds((stale,), (shapes, stale))),
        Check("rebound inputs", "memory", 1.5, finds((rebound,), (rebound, in_place))),
        Check("work of the first call", "state", 1.5, finds((created,), (created, in_place))),
    ),
)
