"""Exercise 16.3: a callback that writes counters to TensorBoard, and costs nothing when it is off."""

import base64
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from autograder.exercises.lightning_training.port_trainer import LARGEST_SEED
from autograder.exercises.programs import lightning_runs
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.module import read_events
from autograder.host.kinds.reports import entries, items

NAMES = ("C1", "C2", "C3", "C4", "C5")
NEAR = 0.02  # a step moves a counter by about 1, another order of sums by less than 0.001
Values = Mapping[str, float]


@dataclass(frozen=True)
class Counting:
    """One call of the counting function, as a written result shows it."""

    step: int
    """The optimiser's steps until then."""
    right: bool
    """Whether it was given the task and the batch of the step that had just ended."""


class Counted:
    """One training with the callbacks of an answer: the event file that it wrote, read as data.

    With `before` the task is trained first with callbacks that the answer makes for these options; they should count
    nothing.
    """

    def __init__(
        self,
        answer: AnalysisAnswer,
        draw: Draw,
        *,
        before: Mapping[str, bool] | None = None,
        accumulate: int = 1,
        epochs: int = 1,
    ) -> None:
        if epochs == 1:
            self.every = draw.integer(2, 4)
            steps = 3 * self.every + draw.integer(1, self.every - 1)
        else:  # in two epochs, no step is due when the first ends, and one is when the training ends
            self.every = 2 * draw.integer(1, 2)
            steps = self.every + self.every // 2
        lengths = {"steps": steps, "accumulate": accumulate, "epochs": epochs}
        run = {**lengths, "every": self.every, "on": True, "logs": True}
        seed, runs = draw.integer(0, LARGEST_SEED), [run] if before is None else [{**run, **before}, run]
        report = entries(answer.employ(lightning_runs, "count_in_turn", runs=[*runs], seed=seed))
        if "class" in report:
            raise CheckFailedError(
                f"counter_callbacks returned a {str(report['class'])[:40]}; return a list of lightning.Callback, which "
                "is empty when off."
            )
        self.due = list(range(self.every, steps * epochs + 1, self.every))
        self.scalars = _scalars(answer, items(report.get("files", []), (str,)))
        found = [(tag.rpartition("/")[2], points) for tag, points in self.scalars.items()]
        values = [[(name, value) for _, value in points] for name, points in found if name in NAMES]
        rows = [dict(row) for row in zip(*values, strict=False)]
        self.countings = countings(rows, moments_of_the_loop(seed, len(runs) - 1, **lengths))
        """The calls whose results were written, in this order; None for what did not come from a call."""

    def require_called(self, why: str = "") -> None:
        """Raise `CheckFailedError` if no result of the counting function was written; `why` explains other results."""
        if not self.countings:
            raise CheckFailedError("With on=True no result of count was written, so nothing else can be tried.")
        if self.countings[0] is None:
            raise CheckFailedError(
                "The first counters that were written are none that count gives after a step of this training. "
                + (why or "Write what count returns, and call it after a step only.")
            )


Moment = Callable[[Values], Counting | None]
"""Tells whether a result is that of a call at this moment of a training; such a call moves the weights."""


def countings(rows: Sequence[Values], moments: Iterator[Moment]) -> list[Counting | None]:
    """Return the calls that made the results, each equal to its neighbour's if both results are equal.

    From the first result that no call made, all are None.
    """
    found = list[Counting | None]()
    for call_of in moments:
        while len(found) < len(rows):
            again = bool(found) and rows[len(found)] == rows[len(found) - 1]
            call = found[-1] if again else call_of(rows[len(found)])
            if call is None:
                break
            found.append(call)
    return [*found, *(None for _ in rows[len(found) :])]


def moments_of_the_loop(seed: int, before: int, steps: int, accumulate: int, epochs: int) -> Iterator[Moment]:
    """Train by a plain loop as `count_in_turn` does; it is not in the text that a worker gets.

    There is a moment before each batch that completes a step, and one after each batch. `before` trainings come first,
    in which nothing is counted.
    """
    part = lightning_runs.parts_of("a model", seed)["model"]
    epoch = [lightning_runs.rows(seed + number, 2) for number in range(steps * accumulate)]

    def moment(step: int, batch: torch.Tensor, *, right: bool) -> Moment:
        def call_of(found: Values) -> Counting | None:
            if not near(found, lightning_runs.counters(part, batch)):
                return None
            lightning_runs.leave_trace(part)
            return Counting(step, right)

        return call_of

    for training in range(before + 1):
        optimizer = torch.optim.SGD(part.parameters(), lr=lightning_runs.RATE)
        for number, batch in enumerate(epoch * epochs):
            step, rest = divmod(number + 1, accumulate)
            if training == before and not rest:
                yield moment(step - 1, batch, right=False)
            (F.mse_loss(part(batch), batch) / accumulate).backward()
            if not rest:
                optimizer.step()
                optimizer.zero_grad()
            if training == before:
                yield moment(step, batch, right=not rest)


def near(found: Values, expected: Values) -> bool:
    """Return whether counters are equal but for the rounding of the training and of TensorBoard."""
    return all(math.isclose(value, expected[name], rel_tol=1e-6, abs_tol=NEAR) for name, value in found.items())


def _scalars(answer: AnalysisAnswer, texts: Sequence[str]) -> Mapping[str, Sequence[tuple[int, float]]]:
    """Return the scalars of event files, which a worker reads in which no code of the answer is."""
    try:
        files = {f"tfevents {place}": base64.b64decode(text, validate=True) for place, text in enumerate(texts)}
    except ValueError:
        raise MalformedAnswerError from None
    return read_events(answer.graphs.clean, files).scalars if files else {}


def require_due(counted: Counted, about: str, why: str) -> None:
    """Raise `CheckFailedError` unless the counting function was called after the steps that are due, and no others."""
    counted.require_called()
    steps = [each.step for each in dict.fromkeys(counted.countings) if each]
    if steps != counted.due:
        raise CheckFailedError(
            f"{about} with every={counted.every}, count was called when trainer.global_step was "
            f"{contrasted(steps, counted.due)}. {why}"
        )
    if None in counted.countings:
        raise CheckFailedError(f"{about} with every={counted.every}, more was written than count returned. {why}")


def _calls(answer: AnalysisAnswer, draw: Draw) -> None:
    why = "global_step counts finished steps; on_train_batch_end comes after one."
    require_due(Counted(answer, draw), "In a training", why)


def _values(answer: AnalysisAnswer, draw: Draw) -> None:
    counted = Counted(answer, draw)
    counted.require_called()
    wrong = next((each.step for each in counted.countings if each and not each.right), None)
    if wrong is not None:
        raise CheckFailedError(
            f"At step {wrong} count was called with another task or batch than those of the step that ended. "
            "on_train_batch_end is given both."
        )
    for name in NAMES:
        points = counted.scalars.get(f"counters/{name}", ())
        if not points:
            known = ", ".join(sorted(map(str, counted.scalars)))[:80]
            raise CheckFailedError(f"TensorBoard has no scalar `counters/{name}`; it has {known or 'none'}.")
        for (step, value), call in zip(points, counted.countings, strict=False):
            if call is None or call.step != step:
                found = "no result of count" if call is None else f"what count returned after step {call.step}"
                raise CheckFailedError(
                    f"`counters/{name}` has a point ({step}, {value:g}), {found}. Write each result at the step at "
                    "which it was counted: step=trainer.global_step."
                )


def _off(answer: AnalysisAnswer, draw: Draw) -> None:
    Counted(answer, draw, before={"on": False}).require_called(
        "The task was trained with on=False before, and count, which moves its weights, was called there: return an "
        "empty list then."
    )


EXERCISE = Exercise(
    title="Counters in TensorBoard",
    kind=Kind.ANALYSIS,
    entry_point="counter_callbacks",
    points=10,
    wall_s=150,
    hints=(
        "A callback that is not in the list cannot be called. Decide before training whether there is one.",
        "on_train_batch_end comes after each batch. trainer.global_step counts the steps of the optimiser until then.",
        "trainer.logger.log_metrics(values, step=trainer.global_step) writes at once; trainer.logger is None without "
        "logger. With accumulation several batches share one global_step: remember the last step.",
    ),
    checks=(
        Check("counts after every n steps", "calls", 1.5, _calls),
        Check("five scalars in TensorBoard", "scalars", 1.5, _values),
        Check("nothing is counted when off", "off", 2, _off),
    ),
)
