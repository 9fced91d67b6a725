"""Two recorded calls of one program, with statements that would go wrong if it were captured and replayed.

A recording has a dict for each launch: line, operator, addresses that it reads and writes, shapes, numbers, bytes of
memory, and whether the host reads a value or the program draws from a generator of its own. Nothing runs here.
"""

from collections.abc import Callable
from typing import Any

from autograder.exercises.questions import Question
from autograder.host.draw import Draw

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
VIOLATIONS: tuple[Statement, ...] = (
    *(own_generator, stale, stale_in_a_loop, traded, shapes, second_shapes),
    *(rebound, swapped, swapped_in_a_loop, written_in_place, fed_back, created, cached),
)
TWINS = tuple(map(harmless, VIOLATIONS))
"""So an operator's name says nothing. A host read has no twin: its operator always reads."""


def program(draw: Draw, *violations: Statement) -> Tape:
    """Return a program with these violations among right statements, in random order."""
    statements = (*violations, *CLEAN, *TWINS)
    tape = Tape(draw)
    for index in draw.sample(range(len(statements)), len(statements)):
        statements[index](tape)
        tape.line += draw.integer(1, 3)
    return tape
