"""Visit the nodes of a graph in sweeps until their states no longer change, and count the visits.

This is how compilers compute facts about nodes: a rule gives a node's state from its own facts and from the states of
its neighbours, and a driver calls the rule. The rule keeps nothing between two calls.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
State = Any
Visit = Callable[[Mapping[str, Any]], State]
VisitEach = Callable[[Sequence[Mapping[str, Any]]], Sequence[State]]


@dataclass(frozen=True)
class Settled:
    """The states after the last sweep."""

    states: Mapping[str, State]  # by the names of the rows
    visits: int
    finished: bool  # False if states still changed when the limit was reached

    def groups(self, key: str = "part") -> dict[Any, list[str]]:
        """Return the names of the rows for each value that states have under `key`; None is left out."""
        found: dict[Any, list[str]] = {}
        for name, state in self.states.items():
            if state[key] is not None:
                found.setdefault(state[key], []).append(name)
        return found


def settle(rows: Sequence[Row], visit: Visit, *, most: int = 50) -> Settled:
    """Visit all rows forward, backward, forward, ... until one sweep changes no state.

    A row is a dict with `name`, `inputs` (names of earlier rows) and other facts. `visit` gets the row with three more
    entries: `state`, which is None at first, and `inputs` and `users` as rows with their states. It returns the state.
    After `most` visits for each row the sweeps end.

        >>> rows = [{"name": "a", "inputs": []}, {"name": "b", "inputs": ["a"]}]
        >>> depth = lambda row: {"part": 1 + max((read["state"]["part"] for read in row["inputs"]), default=0)}
        >>> settle(rows, depth).groups(), settle(rows, depth).visits
        ({1: ['a'], 2: ['b']}, 4)
    """
    waves = [[row["name"]] for row in rows]
    return _settle(rows, waves, lambda wave: [visit(row) for row in wave], most=most)


def settle_in_waves(rows: Sequence[Row], visit_each: VisitEach, *, most: int = 50) -> Settled:
    """Do the same as `settle`, with one call for all rows that have as many rows before them on their longest path.

    No two of them are neighbours, and each still comes after its inputs and before its users: it sees the same states.
    """
    level: dict[str, int] = {}
    waves: list[list[str]] = []
    for row in rows:
        level[row["name"]] = depth = max((level[name] + 1 for name in row["inputs"]), default=0)
        waves += [[]] if depth == len(waves) else []
        waves[depth].append(row["name"])
    return _settle(rows, waves, visit_each, most=most)


def _settle(rows: Sequence[Row], waves: Sequence[list[str]], visit_each: VisitEach, *, most: int) -> Settled:
    users: dict[str, list[str]] = {row["name"]: [] for row in rows}
    for row in rows:
        for name in dict.fromkeys(row["inputs"]):
            users[name].append(row["name"])
    by_name = {row["name"]: row for row in rows}
    states: dict[str, State] = dict.fromkeys(by_name)

    def seen(name: str) -> dict[str, Any]:
        return {**by_name[name], "state": states[name]}

    def neighbours(names: Sequence[str]) -> list[dict[str, Any]]:
        return [{k: v for k, v in seen(each).items() if k != "inputs"} for each in names]

    visits, changed, forward = 0, True, True
    while changed and visits < most * len(rows):
        changed = False
        for wave in waves if forward else reversed(waves):
            names = wave if forward else wave[::-1]
            asked = [
                {**seen(n), "inputs": neighbours(by_name[n]["inputs"]), "users": neighbours(users[n])} for n in names
            ]
            for name, state in zip(names, visit_each(asked), strict=True):
                changed = changed or states[name] != state
                states[name] = state
            visits += len(names)
        forward = not forward
    return Settled(states, visits, not changed)
