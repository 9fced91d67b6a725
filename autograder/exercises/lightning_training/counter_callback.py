"""Exercise 16.3: a callback that writes counters to TensorBoard, and costs nothing when it is off."""

import base64
import math
from collections.abc import Mapping, Sequence
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
MOST_CALLS = 200  # in trainings of at most 18 batches
NO_CALLS = "With on=True no result of the counting function was written, so nothing else can be tried."


@dataclass(frozen=True)
class Counting:
    """One call of the counting function, as a written result shows it."""

    number: int
    step: int
    """The optimiser's steps until then."""
    right: bool
    """Whether it was given the task and the batch of this step."""


class Counted:
    """One training with the callbacks of an answer: the event file that it wrote, read as data.

    With `before` the answer's callbacks are in another training first, which differs by these options and has the same
    counting function. If `hollow`, no tensor has numbers that could be read.
    """

    def __init__(
        self,
        answer: AnalysisAnswer,
        draw: Draw,
        *,
        before: Mapping[str, bool] | None = None,
        accumulate: int = 1,
        epochs: int = 1,
        hollow: bool = False,
    ) -> None:
        if epochs == 1:
            self.every = draw.integer(2, 4)
            steps = 3 * self.every + draw.integer(1, self.every - 1)
        else:  # in two epochs, no step is due when the first ends, and one is when the training ends
            self.every = 2 * draw.integer(1, 2)
            steps = self.every + self.every // 2
        lengths = {"seed": draw.integer(0, LARGEST_SEED), "steps": steps, "accumulate": accumulate, "epochs": epochs}
        run = {**lengths, "every": self.every, "on": True, "logs": True, "hollow": hollow}
        runs = [run] if before is None else [{**run, **before}, run]
        report = entries(answer.employ(lightning_runs, "count_in_turn", runs=[*runs]))
        if "class" in report:
            raise CheckFailedError(
                f"counter_callbacks returned a {str(report['class'])[:40]}; return a list of lightning.Callback, which "
                "is empty when off."
            )
        reports = items(report.get("runs"), (dict,), len(runs))
        self.callbacks = items(reports[0].get("callbacks"), (str,))
        self.due = list(range(self.every, steps * epochs + 1, self.every))
        self.right = (
            [lightning_runs.counters_without_numbers(lengths["seed"], step) for step in range(steps * epochs + 1)]
            if hollow
            else counters_of_the_loop(**lengths)
        )
        self.read = str(reports[-1].get("read", ""))
        """What a callback raised where no tensor has numbers."""
        self.scalars = _scalars(answer, items(reports[-1].get("files"), (str,)))
        found = [(tag.rpartition("/")[2], points) for tag, points in self.scalars.items()]
        values = [[(name, value) for _, value in points] for name, points in found if name in NAMES]
        self.countings = [self._counting(row) for row in zip(*values, strict=False)]
        """The calls whose results were written, in this order; None for what did not come from a call."""

    def _counting(self, row: Sequence[tuple[str, float]]) -> Counting | None:
        """Return the call whose results these values are: the only one that gives each of them."""
        found = set.intersection(*(self._possible(name, value) for name, value in row))
        return min(found, key=lambda each: each.number, default=None)

    def _possible(self, name: str, value: float) -> set[Counting]:
        """Return the calls that give a value: the counter after some step, and what `count` adds to it."""
        found = set()
        for step, right in enumerate(self.right if math.isfinite(value) else ()):
            for others in (0.0, lightning_runs.OTHERS):
                number = round((value - right[name] - others) / lightning_runs.CALL)
                if 1 <= number <= MOST_CALLS and near(value, right[name] + others + number * lightning_runs.CALL):
                    found.add(Counting(number, step, not others))
        return found

    def require_called(self) -> None:
        """Raise `CheckFailedError` if no result of the counting function was written."""
        if not self.calls:
            raise CheckFailedError(NO_CALLS)

    @property
    def calls(self) -> list[Counting]:
        """The calls whose results were written, each once."""
        return list(dict.fromkeys(each for each in self.countings if each is not None))

    @property
    def calls_before(self) -> int:
        """How often the counting function was called in the training before."""
        return self.calls[0].number - 1


def counters_of_the_loop(seed: int, steps: int, accumulate: int, epochs: int) -> list[dict[str, float]]:
    """Return the counters before and after each step of a plain loop, which trains as `count_in_turn` does.

    It is not in the text that a worker gets.
    """
    count = steps * accumulate
    part = lightning_runs.parts_of("a model", seed)["model"]
    found = [lightning_runs.counters(part)]
    optimizer = torch.optim.SGD(part.parameters(), lr=lightning_runs.RATE)
    for number in range(count * epochs):
        batch = lightning_runs.rows(seed + number % count, 2)
        (F.mse_loss(part(batch), batch) / accumulate).backward()
        if not (number + 1) % accumulate:
            optimizer.step()
            optimizer.zero_grad()
            found.append(lightning_runs.counters(part))
    return found


def near(found: float, expected: float) -> bool:
    """Return whether two counters are equal but for the rounding of the training and of TensorBoard."""
    return math.isclose(found, expected, rel_tol=1e-6, abs_tol=NEAR)


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
    steps = [each.step for each in counted.calls]
    if steps != counted.due:
        raise CheckFailedError(
            f"{about} with every={counted.every}, count was called when trainer.global_step was "
            f"{contrasted(steps, counted.due)}. {why}"
        )
    if (calls := counted.calls[-1].number) > len(steps):
        raise CheckFailedError(
            f"{about} with every={counted.every}, count was called {calls} times until the last step that is due, and "
            f"{len(steps)} results were written. {why}"
        )


def _calls(answer: AnalysisAnswer, draw: Draw) -> None:
    why = "global_step counts finished steps; on_train_batch_end comes after one."
    require_due(Counted(answer, draw), "In a training", why)


def _values(answer: AnalysisAnswer, draw: Draw) -> None:
    counted = Counted(answer, draw)
    counted.require_called()
    wrong = next((each.step for each in counted.calls if not each.right), None)
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
    counted = Counted(answer, draw, before={"on": False})
    counted.require_called()
    if counted.calls_before or counted.callbacks:
        raise CheckFailedError(
            f"With on=False count was called {counted.calls_before} times, and the list has "
            f"{', '.join(counted.callbacks)[:80] or 'no callback'}. Return an empty list: then nothing is called."
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
        Check("counts after every n steps", "calls", 2, _calls),
        Check("five scalars in TensorBoard", "scalars", 2.5, _values),
        Check("nothing is called when off", "off", 1.5, _off),
    ),
)
