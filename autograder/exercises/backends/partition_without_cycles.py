"""Exercise 10.3: partition a graph without a cycle, by a rule that visits one row at a time.

The host sweeps over the graph and calls the rule, so it counts the visits itself. It reads nothing but the parts.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.exercises.programs.supported_rows import SMALL, Row, Shape, random_rows, small
from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.value import ValueAnswer
from autograder.host.point_shares import share_among
from course_lib.backends.sweeps import settle_in_waves

Parts = Mapping[str, int]  # by the name of a supported row
Drawn = Callable[[Draw], list[Row]]
MOST_FACTS, MOST_CHARACTERS, LARGEST = 8, 40, 2**53
FEWER = (
    "A path needs a new part only where it comes back from a row that the target does not take; rows without a path "
    "between them may share a part."
)
NEAR_FEWEST = 0.9  # of the bytes that waiting saves: a right rule lets rows outside of all parts wait, or does not
SWEEPS = 6  # visits for each row that earn the points
PATIENCE = 60  # visits for each row after which the host stops
STILL = (
    "states still changed after {visits:,} visits of {rows:,} rows. A state that moves by one part a visit needs as "
    "many sweeps as there are parts: compute it at once from the states of the neighbours."
)

KEPT = (
    "{name} was asked about once more in another process, by other names, with the states that its neighbours had: "
    "visit returned "
    "{found:.80}, before it was {before:.80}. Keep nothing between two calls: the states are the memory."
)
ASKED_AGAIN = 16  # about so many rows of a large graph; the last question first, when no other row was seen

facts_of = kept(__name__, "facts_of")


def partitioned(answer: ValueAnswer, rows: Sequence[Row], *, sweeps: int = PATIENCE) -> Parts:
    """Return the part of each supported row by the answer's rule, after checking that no cycle arises."""

    looked_at = {row["name"] for row in rows[:: 1 + len(rows) // ASKED_AGAIN]}
    changes: list[tuple[Any, Any]] = []

    def visit_each(asked: Sequence[Any]) -> list[Any]:
        found = [_state(each) for each in answer.ask_each(asked)]
        both = zip(asked, found, strict=True)
        changes.extend((row, state) for row, state in both if row["name"] in looked_at and row["state"] != state)
        return found

    settled = settle_in_waves(rows, visit_each, most=sweeps)
    if not settled.finished:
        raise CheckFailedError(STILL.format(visits=settled.visits, rows=len(rows)))
    parts = {row["name"]: _part(settled.states[row["name"]], row["name"]) for row in rows if row["supported"]}
    _require_no_memory(answer, changes[::-1])
    _require_no_cycle(rows, parts)
    _require_picks(rows, parts)
    return parts


def _require_no_memory(answer: ValueAnswer, changes: Sequence[tuple[Any, Any]]) -> None:
    """Raise `CheckFailedError` unless a worker that did not see the other rows gives the same states."""
    again = [_renamed(row, state) for row, state in changes]
    for (row, _), (_, before), found in zip(
        changes, again, answer.elsewhere.ask_each([asked for asked, _ in again]), strict=True
    ):
        if found != before:
            raise CheckFailedError(KEPT.format(name=row["name"], found=repr(found), before=repr(before)))


def _renamed(row: Row, state: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return a question and its answer with names by which a row is not known again in other questions."""
    names = [row["name"], *(each["name"] for each in (*row["inputs"], *row["users"]))]
    new = {name: f"w{place}" for place, name in enumerate(dict.fromkeys(names))}

    def of(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: of(each) for key, each in value.items()}
        if isinstance(value, list):
            return [of(each) for each in value]
        return new.get(value, value) if isinstance(value, str) else value

    return of(row), of(state)


def _state(found: Any) -> Any:
    """Return a state that is a small dict; a state that grows with the graph would make each visit slow."""
    if not isinstance(found, dict):
        raise CheckFailedError(f"visit returned a {type(found).__name__}; return a dict with the key 'part'.")
    sizes = (len(v) > MOST_CHARACTERS if isinstance(v, str) else _large(v) for v in found.values())
    if len(found) > MOST_FACTS or any(sizes):
        raise CheckFailedError(
            f"A state is too large: at most {MOST_FACTS} entries, each a number below 2**53, a short text, True, False "
            "or None. Keep what the neighbours need, not what led to it."
        )
    return found


def _large(value: Any) -> bool:
    return value is not None and (not isinstance(value, int | float) or abs(value) > LARGEST)


def _part(state: Mapping[str, Any], name: str) -> int:
    part = state.get("part")
    if isinstance(part, float) and part.is_integer():
        return int(part)
    if type(part) is not int:
        raise CheckFailedError(
            f"The target takes {name}, and its state has part {part!r:.40}; expected a whole number. None is for "
            "rows that the target does not take."
        )
    return part


def _require_no_cycle(rows: Sequence[Row], parts: Parts) -> None:
    """Raise `CheckFailedError` unless the parts and the other rows can run one after the other."""
    group: dict[str, object] = {row["name"]: parts.get(row["name"], row["name"]) for row in rows}
    needs: dict[object, dict[object, None]] = {each: {} for each in group.values()}
    for row in rows:
        for name in row["inputs"]:
            if group[name] != group[row["name"]]:
                needs[group[row["name"]]][group[name]] = None
    readers: dict[object, list[object]] = {each: [] for each in needs}
    for each, needed in needs.items():
        for other in needed:
            readers[other].append(each)
    missing = {each: len(needed) for each, needed in needs.items()}
    ready = [each for each, count in missing.items() if count == 0]
    while ready:
        each = ready.pop()
        del missing[each]
        for reader in readers[each]:
            missing[reader] -= 1
            if missing[reader] == 0:
                ready.append(reader)
    if missing:
        raise CheckFailedError(_cycle(needs, list(missing)))


def _cycle(needs: Mapping[object, Mapping[object, None]], waiting: Sequence[object]) -> str:
    """Return a sentence about one cycle among groups that wait for each other."""
    left, walked = set(waiting), [waiting[0]]
    while walked.count(walked[-1]) == 1:
        walked.append(next(each for each in needs[walked[-1]] if each in left))
    cycle = walked[walked.index(walked[-1]) :]
    named = [f"part {each}" if isinstance(each, int) else str(each) for each in cycle]
    shown = named if len(named) <= 6 else [*named[:3], "…", *named[-2:]]
    return (
        f"The parts form a cycle: {' waits for '.join(shown)}. A row that needs a part, and that the same part needs, "
        "has to run before and after it."
    )


def _require_picks(rows: Sequence[Row], parts: Parts) -> None:
    for row in rows:
        if row["picks"] and row["supported"] and parts[row["name"]] != parts[row["inputs"][0]]:
            raise CheckFailedError(
                f"{row['name']} picks a result of {row['inputs'][0]} and is in part {parts[row['name']]}, not in "
                f"part {parts[row['inputs'][0]]}: several results are no tensor that can be stored between parts."
            )


def stored_bytes(rows: Sequence[Row], parts: Parts) -> int:
    """Return the bytes of supported rows that are stored in memory because a row outside of their part reads them."""
    sizes = {row["name"]: row["bytes"] for row in rows}
    read = {name for row in rows for name in row["inputs"] if name in parts and parts.get(row["name"]) != parts[name]}
    return sum(sizes[name] for name in read)


def digest(parts: Parts) -> str:
    """Return a key of a partition that does not depend on the numbers of its parts."""
    members: dict[int, list[str]] = {}
    for name, part in sorted(parts.items()):
        members.setdefault(part, []).append(name)
    return hashlib.sha256(repr(sorted(members.values())).encode()).hexdigest()[:12]


def require_fewest(answer: ValueAnswer, rows: Sequence[Row], *, sweeps: int = PATIENCE) -> Parts:
    """Return the parts, after checking that no partition without a cycle has fewer."""
    parts, facts = partitioned(answer, rows, sweeps=sweeps), facts_of(rows)
    count = len(set(parts.values()))
    if count > facts["fewest"]:
        why = facts["wrong"].get(digest(parts), FEWER)
        raise CheckFailedError(f"In a graph of {len(rows)} rows: {count} parts; {facts['fewest']} are enough. {why}")
    return parts


Run = Callable[[ValueAnswer, Draw], None]


def fewest(*graphs: Drawn, sweeps: int = PATIENCE, together: bool = False) -> Run:
    """Return a check that the parts form no cycle and are as few as possible."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        share_among(
            graphs,
            lambda graph: require_fewest(answer, graph(draw), sweeps=sweeps),
            noun="graphs",
            together=together,
        )

    return run


def few_bytes(*graphs: Drawn) -> Run:
    """Return a check that besides few bytes are stored; as many as without any waiting earn nothing."""

    def require(answer: ValueAnswer, rows: Sequence[Row]) -> None:
        found, facts = stored_bytes(rows, require_fewest(answer, rows)), facts_of(rows)
        late, early = facts["late"], facts["early"]
        share = max(0.0, min(1.0, (early - found) / (NEAR_FEWEST * (early - late))))
        if share < 1:
            raise CheckFailedError(
                f"In a graph of {len(rows)} rows the parts store {found:,} bytes for rows outside; {late:,} are "
                "enough. A row that nobody reads for a while may join the part of its first reader.",
                share=round(share, 3),
            )

    def run(answer: ValueAnswer, draw: Draw) -> None:
        share_among(graphs, lambda graph: require(answer, graph(draw)), noun="graphs")

    return run


def drawn(shape: Shape, *, waits: bool = False) -> Drawn:
    """Return a function that draws a graph which needs three parts, with `waits` more bytes if nothing waits."""

    def graph(draw: Draw) -> list[Row]:
        while True:
            rows = random_rows(draw, shape)
            facts = facts_of(rows)
            begins = not shape.begins_outside or facts["from zero"] > facts["fewest"]
            apart = not shape.several or facts["picks apart"]
            if facts["fewest"] >= 3 and begins and apart and (not waits or facts["early"] > 1.3 * facts["late"]):
                return rows

    return graph


def named(name: str) -> Drawn:
    """Return a function that draws names and sizes for one of the small graphs."""
    return lambda draw: small(draw, name)


EXERCISE = Exercise(
    title="Partition without a cycle",
    kind=Kind.VALUE,
    entry_point="visit",
    points=18,
    masked=("course_lib.backends", "networkx", "torch"),  # each has a pass that makes such parts
    ready_made=("torch.fx.passes.infra.partitioner",),
    wall_s=60,
    hints=(
        "Which part is the earliest that a row can be in? Look at its inputs: when may it share their part, and when "
        "does it need the next one?",
        "The earliest part is the largest over the inputs, and one more where the row is supported and the input is "
        "not. The latest is the smallest over the users, by the same steps backward.",
        "A state {'early': …, 'late': …, 'part': …} is enough. Unsupported rows that need nothing begin at -1. While a "
        "user has no state yet, late is early. A row that picks has the part of its input.",
    ),
    checks=(
        Check("five small graphs", "small graphs", 3, fewest(*map(named, SMALL))),
        Check(
            "as few parts as possible",
            "number of parts",
            4,
            fewest(drawn(Shape(16)), drawn(Shape(30, 3)), drawn(Shape(40, 4, 0.35))),
        ),
        Check(
            "few bytes between parts",
            "bytes",
            2,
            few_bytes(drawn(Shape(30, 2, early=3), waits=True), drawn(Shape(40, 3, early=4), waits=True)),
        ),
        Check(
            "visits of 100 and 1,000 rows",
            "visits",
            1.5,
            fewest(drawn(Shape(100, 4)), drawn(Shape(1000, 8, early=6)), sweeps=SWEEPS, together=True),
        ),
    ),
)
