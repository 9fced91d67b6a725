"""Hidden checks and controls of exercise 10.4."""

from collections.abc import Mapping
from typing import Any

from autograder.exercises.backends.lower_regions import (
    drawn,
    lowers,
    require_few_accesses,
    require_no_spilled_input,
    require_registers,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.programs.fused_regions import BINARY, LAYOUTS, ROWWISE, UNARY, Wish
from autograder.host.exercise import Check, Control, HiddenPart

NEVER = 1 << 30


def fewest_accesses(region: Mapping[str, Any]) -> int:
    """Return the accesses to memory if the value with the latest next use leaves its register (Belady, 1966).

    A value that is an input or was spilled before leaves it for nothing.
    """
    uses: dict[str, list[int]] = {}
    for now, (_, _, reads) in enumerate(region["nodes"]):
        for read in {*reads} - {read for read in reads if not isinstance(read, str)}:
            uses.setdefault(read, []).append(now)
    count, held, stored = len(region["outputs"]), set[str](), set(region["inputs"])

    def after(value: str, now: int) -> int:
        return next((use for use in uses.get(value, []) if use >= now), NEVER)

    def put(value: str, now: int, needed: set[str]) -> int:
        spills = 0
        if len(held) == region["registers"]:
            loser = max(held - needed, key=lambda each: (after(each, now), each in stored, each))
            held.remove(loser)
            if loser not in stored and after(loser, now) < NEVER:
                stored.add(loser)
                spills = 1
        held.add(value)
        return spills

    for now, (name, _, reads) in enumerate(region["nodes"]):
        operands = [read for read in dict.fromkeys(reads) if isinstance(read, str)]
        for read in operands:
            if read not in held:
                count += 1 + put(read, now, {*operands})
        held -= {value for value in held if after(value, now + 1) == NEVER}
        count += put(name, now + 1, set())
    return count


ANSWERS = Answers(__name__)

FAR = "next_use(nodes, n, now), n in inputs"
RIGHT: tuple[Any, ...] = (
    ("operands are nearest, so they stay by themselves", ("n in home if n not in needed", "n in home")),
    ("the mean by a division", ("'mul', into, into, 1 / space[-1]", "'div', into, into, space[-1]")),
    ("registers from the lowest number", ("free.pop()", "free.pop(0)")),
    ("what memory holds leaves first at equal distance", (FAR, "next_use(nodes, n, now), n in slots, n in inputs")),
    (
        "strides as PyTorch expands them",
        (
            "[0] * (len(space) - len(shape)) + [step * (size > 1) for size, step in zip(shape, steps, strict=True)]",
            "list(torch.empty_strided(shape, steps).expand(space).stride())",
        ),
    ),
)
"""Small variants that are right, too: name, and edits of the reference."""
SLIPS: tuple[Any, ...] = (
    ("the mean is a sum", 17, "", (", ['mul', into, into, 1 / space[-1]]", "")),
    ("the mean over the rows", 17, "", ("1 / space[-1]", "1 / space[0]")),
    ("relu is no instruction", 17, "", ("'relu':", "'rel':")),
    ("strides of inputs as they are", 14, "", (" * (size > 1)", "")),
    (
        "dimensions from the left",
        15.1,
        "below",
        ("[0] * (len(space) - len(shape)) + [", "["),
        ("strict=True)]", "strict=True)] + [0] * (len(space) - len(shape))"),
    ),
    (
        "as many registers as values",
        8,
        "below",
        ("range(region['registers'])", "range(200)"),
        ("free.pop()", "free.pop(0)"),
    ),
    ("one register too many", 0, "", ("range(region['registers'])", "range(region['registers'] + 1)")),
    ("registers from 1 on", 0, "", ("range(region['registers'])", "range(1, region['registers'] + 1)")),
    ("values never leave", 6, "below", ("free += [", "[")),
    ("the value with the next use leaves", 14, "below", ("max((n", "min((n")),
    ("the oldest value leaves", 17, "below", (FAR, "-list(home).index(n)")),
    ("inputs are spilled", 14.4, "below", ("loser not in inputs and ", "")),
    ("one slot for all", 10, "below", ("slots.setdefault(loser, len(slots))", "slots.setdefault(loser, 0)")),
    ("outputs are not stored", 0, "", ("if name in outputs else []", "if False else []")),
    ("only the first output is stored", 17, "", ("if name in outputs else", "if name == [*outputs][0] else")),
    ("rows as texts", 0, "", ("return rows", "return [' '.join(map(str, row)) for row in rows]")),
    ("freed one node too early", 0, "", ("next_use(nodes, old, now + 1)", "next_use(nodes, old, now + 2)")),
)
"""Likely slips: name, marks, whether it gets less, and edits of the reference."""

NEGATED = (
    "return [row for each in rows for row in ([each, ['lt', each[1], each[1], 0], ['neg', each[1], each[1]]] if "
    "each[0] == 'load' else [each])]"
)
"""What no tensor library does: it negates a truth."""

HIDDEN = HiddenPart(
    checks=(
        Check(
            "many values at once",
            "registers",
            1,
            lowers(
                drawn(Wish(30, 4, 7, 5, again=0.4), tight=True),
                drawn(Wish(40, 6, 9, 6, again=0.4), tight=True),
                drawn(Wish(50, 8, 12, 6, again=0.4), tight=True),
                require=require_registers,
            ),
        ),
        Check(
            "layouts of inputs",
            "layouts",
            1,
            lowers(
                drawn(Wish(9, inputs=5, layouts=("padded", "transposed", "number", "columns", "a table of one row"))),
                *[drawn(Wish(12, inputs=7, layouts=tuple(LAYOUTS), rank=3))] * 2,
                together=True,
            ),
        ),
        Check(
            "sizes of one",
            "sizes",
            0.5,
            lowers(*[drawn(Wish(12, inputs=7, layouts=tuple(LAYOUTS), ones=True))] * 3, together=True),
        ),
        Check(
            "outputs that are read, values that are not",
            "outputs",
            1,
            lowers(
                drawn(Wish(8, outputs=3, dead=True)),
                drawn(Wish(9, outputs=4, operators=(*UNARY, *BINARY, *ROWWISE), row_output=True)),
            ),
        ),
        Check(
            "inputs leave registers",
            "spilled inputs",
            2,
            lowers(
                *[drawn(Wish(24, 5, 6, 6, again=0.5), tight=True)] * 2,
                drawn(Wish(30, 4, 5, 6, again=0.5), tight=True),
                require=require_no_spilled_input,
                together=True,
            ),
        ),
        Check(
            "few accesses of large regions",
            "accesses",
            2,
            lowers(
                *[drawn(Wish(40, 6, 9, 6, again=0.4), tight=True)] * 2,
                *[drawn(Wish(60, 8, 12, 6, again=0.4), tight=True)] * 2,
                require=require_few_accesses,
            ),
        ),
    ),
    controls=(
        ANSWERS.reference(18),
        *ANSWERS.styles(18),
        *(ANSWERS.edited(name, 18, *edits) for name, *edits in RIGHT),
        *(ANSWERS.edited(name, marks, *edits, below=bool(below)) for name, marks, below, *edits in SLIPS),
        ANSWERS.file("every value through memory", 8.5, below=True),
        ANSWERS.file("spills as the library does", 14.4, below=True),
        Control("no rows", "def lower_region(region):\n    return []\n", 0),
        ANSWERS.edited("comparisons are negated", 0, ("return rows", NEGATED)),
    ),
)
