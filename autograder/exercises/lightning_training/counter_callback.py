"""Exercise 16.3: a callback that writes counters to TensorBoard, and costs nothing when it is off."""

import math
from typing import Any

from autograder.exercises.lightning_training.port_trainer import LARGEST_SEED
from autograder.exercises.programs import lightning_runs
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.reports import Report, entries, numbers

NAMES = ("C1", "C2", "C3", "C4", "C5")
NEAR = 0.02  # a step moves a counter by about 1, another order of sums by less than 0.001
NO_CALLS = "With on=True the counting function was never called, so nothing else can be tried."


class Counted:
    """One training with the callbacks of an answer, as the worker reports it."""

    def __init__(
        self,
        answer: AnalysisAnswer,
        draw: Draw,
        *,
        on: bool = True,
        accumulate: int = 1,
        epochs: int = 1,
        logs: bool = True,
    ) -> None:
        if epochs == 1:
            self.every = draw.integer(2, 4)
            steps = 3 * self.every + draw.integer(1, self.every - 1)
        else:  # in two epochs, no step is due when the first ends, and one is when the training ends
            self.every = 2 * draw.integer(1, 2)
            steps = self.every + self.every // 2
        run = {"seed": draw.integer(0, LARGEST_SEED), "steps": steps, "accumulate": accumulate, "epochs": epochs}
        report = entries(
            answer.employ(lightning_runs, "count_while_fitting", every=self.every, on=on, logs=logs, **run)
        )
        if "class" in report:
            raise CheckFailedError(
                f"counter_callbacks returned a {str(report['class'])[:40]}; return a list of lightning.Callback, which "
                "is empty when off."
            )
        self.due = list(range(self.every, steps * epochs + 1, self.every))
        self.right = lightning_runs.counters_of_the_loop(**run)
        self.evidence = [numbers(each, 3) for each in _list(report, "calls")]
        self.calls, self.hooks = [step for step, _, _ in self.evidence], _list(report, "hooks")
        self.scalars, self.reads = entries(report.get("scalars")), report.get("reads", 0)
        if type(self.reads) is not int:
            raise MalformedAnswerError

    def require_called(self) -> None:
        """Raise `CheckFailedError` if nothing was counted, or not with the weights that the Trainer has then."""
        if not self.calls:
            raise CheckFailedError(NO_CALLS)
        for step, found, _ in self.evidence:
            if not near(found, self.after(step)["C1"]):
                raise CheckFailedError(
                    f"At step {step:g} count saw other weights than those after this step. Call it with the task that "
                    "the hook is given, while the Trainer trains."
                )

    def after(self, step: float) -> dict[str, float]:
        """Return the counters after a step; those of no step are no numbers."""
        known = step in range(len(self.right))
        return self.right[int(step)] if known else dict.fromkeys(NAMES, math.nan)


def near(found: float, expected: float) -> bool:
    """Return whether two counters are equal but for the rounding of the training and of TensorBoard."""
    return math.isclose(found, expected, rel_tol=1e-6, abs_tol=NEAR)


def _list(report: Report, name: str) -> list[Any]:
    found = report.get(name)
    if not isinstance(found, list):
        raise MalformedAnswerError
    return found


def require_due(counted: Counted, about: str, why: str) -> None:
    """Raise `CheckFailedError` unless the counting function was called after the steps that are due."""
    counted.require_called()
    if counted.calls != counted.due:
        raise CheckFailedError(
            f"{about} with every={counted.every}, count was called when trainer.global_step was "
            f"{contrasted(counted.calls, counted.due)}. {why}"
        )


def _calls(answer: AnalysisAnswer, draw: Draw) -> None:
    why = "global_step counts finished steps; on_train_batch_end comes after one."
    require_due(Counted(answer, draw), "In a training", why)


def _values(answer: AnalysisAnswer, draw: Draw) -> None:
    counted = Counted(answer, draw)
    counted.require_called()
    wrong = next((step for step, _, right in counted.evidence if not right), None)
    if wrong is not None:
        raise CheckFailedError(
            f"At step {wrong:g} count was called with another task or batch than those of the step that ended, and "
            "returned nothing. on_train_batch_end is given both."
        )
    for name in NAMES:
        points = counted.scalars.get(f"counters/{name}")
        if not isinstance(points, list) or not points:
            known = ", ".join(sorted(map(str, counted.scalars)))[:80]
            raise CheckFailedError(f"TensorBoard has no scalar `counters/{name}`; it has {known or 'none'}.")
        for (step, value), call in zip((numbers(point, 2) for point in points), counted.calls, strict=False):
            right = counted.after(call)[name]
            if step != call or not near(value, right):
                raise CheckFailedError(
                    f"`counters/{name}` has a point ({step:g}, {value:g}); count returned {right:g} after step "
                    f"{call:g}. Write each result at the step at which it was counted: step=trainer.global_step."
                )
        if len(points) != len(counted.calls):
            raise CheckFailedError(
                f"`counters/{name}` has {len(points)} points; count was called {len(counted.calls)} times."
            )


def _off(answer: AnalysisAnswer, draw: Draw) -> None:
    Counted(answer, draw).require_called()
    counted = Counted(answer, draw, on=False)
    if counted.calls or counted.hooks:
        raise CheckFailedError(
            f"With on=False count was called {len(counted.calls)} times, and Lightning calls "
            f"{', '.join(map(str, counted.hooks))[:80] or 'no hook'}. Return an empty list: then nothing is called."
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
