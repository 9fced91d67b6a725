"""Exercise 10.6: find the passes that are wrong together, with few verifications.

The answer plans one step at a time. The host keeps the history of each pipeline and counts the verifications itself.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.value import ValueAnswer
from autograder.host.point_shares import share_among

VERBS = ("fold", "fuse", "hoist", "inline", "merge", "move", "prune", "reorder", "share", "sink", "split", "tile")
NOUNS = (
    "adds", "biases", "branches", "casts", "constants", "copies", "dropouts", "gates", "gelus", "heads", "loads",
    "masks", "norms", "products", "reductions", "scales", "views",
)  # fmt: skip
FORM = "Return {'verify': names} for the next verification, or {'bad': names} for the result"


@dataclass(frozen=True)
class Pipeline:
    """Passes in order, and the sets of passes of which each set is wrong if all of it runs."""

    passes: tuple[str, ...]
    wrong: tuple[frozenset[str], ...] = ()

    def holds(self, names: Collection[str]) -> bool:
        """Return whether a program still computes the same after these passes."""
        return not any(together <= set(names) for together in self.wrong)

    @property
    def count(self) -> int:
        """Return the number of passes to find."""
        return max(map(len, self.wrong), default=0)

    @property
    def patience(self) -> int:
        """Return the number of verifications after which the host stops: enough for a search one by one."""
        return (1 + self.count) * (len(self.passes) + 2)

    def enough(self, found: int) -> int:
        """Return how many verifications are enough to find `found` passes that are wrong together.

        One of all passes; then for each of them one search among the passes by halves, and one of what is found.
        """
        return 1 + found * (math.ceil(math.log2(len(self.passes))) + 1)


Drawn = Callable[[Draw], Pipeline]


def pipeline(size: int, *together: int, places: Sequence[int] = ()) -> Drawn:
    """Return a function that draws a pipeline of `size` passes, and for each of `together` a set of so many wrong ones.

    `places` are the places of the wrong passes, where they are not drawn. No two of those drawn are neighbours, since
    there a search that forgets what it found is right by chance.
    """

    def drawn(draw: Draw) -> Pipeline:
        passes = tuple(draw.sample([f"{verb}_{noun}" for verb in VERBS for noun in NOUNS], size))
        left = [passes[place] for place in places or _apart(draw, size, sum(together))]
        wrong = []
        for count in together:
            wrong.append(frozenset(left[:count]))
            left = left[count:]
        return Pipeline(passes, tuple(wrong))

    return drawn


def _apart(draw: Draw, size: int, count: int) -> list[int]:
    """Return so many places of `size`, in a drawn order, of which no two are neighbours."""
    among_fewer = sorted(draw.sample(range(size - max(count - 1, 0)), count))
    return draw.sample([place + between for between, place in enumerate(among_fewer)], count)


@dataclass
class Search:
    """The history of one pipeline: what was verified, in order, with its result."""

    pipeline: Pipeline
    seen: list[tuple[tuple[str, ...], bool]] = field(default_factory=list)

    def run(self, answer: ValueAnswer) -> list[str]:
        """Return the passes that the answer calls bad; raises `CheckFailedError` if it takes too many steps."""
        for _ in range(self.pipeline.patience + 1):
            history = [[list(names), holds] for names, holds in self.seen]
            step = answer.ask({"passes": list(self.pipeline.passes), "seen": history})
            if not isinstance(step, dict) or len(step) != 1 or not {"verify", "bad"} & set(step):
                raise CheckFailedError(f"next_step returned {_shown(step)}. {FORM}.")
            ((what, value),) = step.items()
            names = self._names(value)
            if what == "bad":
                return list(names)
            if names in {verified for verified, _ in self.seen}:
                raise CheckFailedError(
                    f"It verifies {_shown(list(names))} again: the result stands in `seen`. Look there before you ask."
                )
            self.seen.append((names, self.pipeline.holds(names)))
        raise CheckFailedError(
            f"{self.where} it was stopped after {len(self.seen)} verifications without a result. Each verification "
            "has to leave fewer passes that come into question."
        )

    @property
    def where(self) -> str:
        """Return the beginning of a sentence about this pipeline."""
        return f"Of {len(self.pipeline.passes)} passes,"

    def _names(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise CheckFailedError(f"next_step named {_shown(value)}. {FORM}: a list of names of `passes`.")
        strange = set(value) - set(self.pipeline.passes)
        if strange or len(set(value)) != len(value):
            wrong = f"{min(strange)!r:.40}, which is not in `passes`" if strange else "a pass twice"
            raise CheckFailedError(f"next_step named {wrong}. Name each pass once.")
        return tuple(sorted(value, key=self.pipeline.passes.index))


def _shown(value: object) -> str:
    return f"{value!r:.60}"


def require_found(search: Search, answer: ValueAnswer) -> None:
    """Raise `CheckFailedError` unless the passes that the answer names are wrong together and none can be left out."""
    found, given = search.run(answer), search.pipeline
    if not given.wrong:
        if found:
            raise CheckFailedError(
                f"{search.where} none is wrong, and {found[0]!r} was called bad. A verification of all passes says "
                "whether there is anything to look for."
            )
        return
    if set(found) in [set(together) for together in given.wrong]:
        return
    named = f"{len(found)} {'was' if len(found) == 1 else 'were'} called bad"
    raise CheckFailedError(f"{search.where} {named}, after {len(search.seen)} verifications. {_why(given, found)}")


def _why(given: Pipeline, found: Sequence[str]) -> str:
    together = min(given.wrong, key=lambda each: len(each ^ set(found)))
    if not given.holds(found):
        spare = next(name for name in found if not given.holds([n for n in found if n != name]))
        return f"The program is wrong without {spare!r}, too: name as few passes as possible."
    if not found:
        return "All of them together make the program wrong, so some of them have to be named."
    if set(found) < together:
        return (
            f"With {_shown(list(found))} alone the program is right: it is wrong only where another pass runs, too. "
            "Keep what you found in each verification, and look for the other one."
        )
    places = sorted(given.passes.index(name) for name in together)
    near = {place + step for place in places for step in (-1, 1)}
    if {given.passes.index(name) for name in found} - set(places) <= near:
        return (
            "The named pass stands beside a bad one. If the first k passes are the fewest that make the program wrong, "
            "the last of these k is bad."
        )
    return "With the named passes alone the program is right. Verify a result before you return it."


Run = Callable[[ValueAnswer, Draw], None]


def finds(*pipelines: Drawn) -> Run:
    """Return a check that the bad passes are found, with at most about as many verifications as there are passes."""

    return _of_each(pipelines, require_found)


def counted(*pipelines: Drawn) -> Run:
    """Return a check that the bad passes are found with as few verifications as a search by halves needs."""

    def require(search: Search, answer: ValueAnswer) -> None:
        require_found(search, answer)
        count = search.pipeline.count
        enough = search.pipeline.enough(count)
        if len(search.seen) > enough:
            raise CheckFailedError(
                f"{search.where} {count} {'is' if count == 1 else 'are'} bad; it took {len(search.seen)} "
                f"verifications, and {enough} are enough. Each one should halve the passes that come into question."
            )

    return _of_each([_beyond_one_by_one(each) for each in pipelines], require)


def _beyond_one_by_one(drawn: Drawn) -> Drawn:
    """Return a function that draws again while a search one by one, from either end, would need few verifications."""

    def pipeline_of(draw: Draw) -> Pipeline:
        while True:
            found = drawn(draw)
            places = [found.passes.index(name) for together in found.wrong for name in together]
            if min(max(places), len(found.passes) - 1 - min(places)) >= found.enough(found.count):
                return found

    return pipeline_of


def _of_each(pipelines: Sequence[Drawn], require: Callable[[Search, ValueAnswer], None]) -> Run:
    def run(answer: ValueAnswer, draw: Draw) -> None:
        share_among(
            [Search(each(draw)) for each in pipelines],
            lambda search: require(search, answer),
            noun="pipelines",
            where=lambda search: f"{search.where} after {len(search.seen)} verifications: ",
            together=True,
        )

    return run


EXERCISE = Exercise(
    title="Find the bad passes",
    kind=Kind.VALUE,
    entry_point="next_step",
    points=8,
    masked=("course_lib.backends",),
    wall_s=60,
    hints=(
        "Verify all passes first. If the program is still right, no pass is bad. If not, which single verification "
        "halves the passes that come into question?",
        "Verify the first k passes. Where the program is wrong, the bad pass, or the last of several, is among them; "
        "where it is right, it comes later. `seen` tells how far you are.",
        "Write a search that asks a function, and let the function look into `seen`; what is not there yet is the next "
        "step. Keep what is found in each later verification, until it is wrong by itself.",
    ),
    checks=(
        Check("one bad pass", "one pass", 1, finds(*[pipeline(size, 1) for size in (5, 8, 12)])),
        Check("no bad pass", "no pass", 0.5, finds(pipeline(6), pipeline(9), pipeline(7, 1))),
        Check(
            "two passes that are wrong together", "two passes", 1, finds(*[pipeline(size, 2) for size in (6, 9, 12)])
        ),
        Check("few verifications", "verifications", 2, counted(pipeline(16, 1), pipeline(33, 1), pipeline(24, 2))),
    ),
)
