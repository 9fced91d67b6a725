"""Hidden checks and controls of exercise 16.3."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.lightning_training.counter_callback import Counted, require_due
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.analysis import AnalysisAnswer


def _accumulates(answer: AnalysisAnswer, draw: Draw) -> None:
    why = "Several batches make one step of the optimiser: count once for it. Batch numbers begin anew in each epoch."
    counted = Counted(answer, draw, accumulate=draw.integer(2, 3), epochs=2)
    require_due(counted, "In two epochs with accumulate_grad_batches", why)


def _without_logger(answer: AnalysisAnswer, draw: Draw) -> None:
    Counted(answer, draw, before={"logs": False}).require_called(
        "The task was trained with logger=False before, and count, which moves its weights, was called there; nothing "
        "can be written then, so count nothing."
    )


ANSWERS = Answers(__name__)
LIMIT = "if step == self.seen or step % every or trainer.logger is None:"
WRITE = "trainer.logger.log_metrics({f'counters/{name}': value for name, value in values.items()}, step=step)"
END = "return [Counters()] if on else []"
STEP = "step = trainer.global_step\n"
ACCUMULATED = "With gradient accumulation, several batches have one `global_step`: count once for it."

HIDDEN = HiddenPart(
    checks=(
        Check("gradients of several batches together", "calls", 3, _accumulates),
        Check("training without a logger", "no logger", 2, _without_logger),
    ),
    controls=(
        ANSWERS.reference(10),
        ANSWERS.file("the writer itself", 10),
        ANSWERS.file("a lambda callback", 10),
        ANSWERS.edited("sorted names", 10, ("in values.items()}", "in sorted(values.items())}")),
        ANSWERS.edited(
            "all loggers",
            10,
            (
                WRITE,
                "for each in trainer.loggers:\n                "
                "each.log_metrics({'counters/' + n: v for n, v in values.items()}, step)",
            ),
        ),
        ANSWERS.edited(
            "a callback without hooks when off", 10, (END, "return [Counters() if on else lightning.Callback()]")
        ),
        ANSWERS.edited(
            "no logger, no step", 10, (LIMIT, "if not trainer.loggers or step % every != 0 or step <= self.seen:")
        ),
        ANSWERS.edited(
            "asks the task", 10, (STEP, "step = task.global_step\n"), (WRITE, WRITE.replace("trainer", "task"))
        ),
        Control("nothing", "def counter_callbacks(count, every, on):\n    return []\n", 0),
        ANSWERS.edited("always on", 8, (END, "return [Counters()]")),
        ANSWERS.edited(
            "asks in the hook",
            10,
            (LIMIT, "if not on or step == self.seen or step % every or trainer.logger is None:"),
            (END, "return [Counters()]"),
        ),
        ANSWERS.edited(
            "counts batches",
            7,
            (STEP, "step = batch_idx + 1\n"),
            trap=ACCUMULATED,
        ),
        ANSWERS.edited(
            "batches of an epoch",
            7,
            (STEP, STEP + "            each = every * trainer.accumulate_grad_batches\n"),
            (LIMIT, "if (batch_idx + 1) % each or trainer.logger is None:"),
            trap=ACCUMULATED,
        ),
        ANSWERS.edited(
            "moves the loss", 10, (STEP, STEP + "            self.loss = outputs['loss'].detach().to('cpu')\n")
        ),
        ANSWERS.edited(
            "every batch of a step",
            7,
            ("step == self.seen or ", ""),
            trap=ACCUMULATED,
        ),
        ANSWERS.edited("after each step", 5.5, ("step % every or ", "")),
        ANSWERS.edited(
            "before the step",
            5.5,
            (
                "on_train_batch_end(self, trainer, task, outputs, batch, batch_idx)",
                "on_train_batch_start(self, trainer, task, batch, batch_idx)",
            ),
        ),
        ANSWERS.edited("no guard for the logger", 8, (" or trainer.logger is None", "")),
        ANSWERS.edited("reads the loss", 10, (STEP, STEP + "            self.loss = outputs['loss'].item()\n")),
        ANSWERS.edited("a step too early", 8.5, ("step=step)", "step=step - 1)")),
        ANSWERS.edited("other names", 8.5, ("counters/", "")),
        ANSWERS.edited(
            "log_dict", 8.5, (WRITE, "task.log_dict({f'counters/{name}': value for name, value in values.items()})")
        ),
        ANSWERS.edited("the first only", 5.5, (LIMIT, "if self.seen or step % every or trainer.logger is None:")),
        ANSWERS.edited("three of five", 8.5, ("in values.items()}", "in list(values.items())[:3]}")),
        ANSWERS.edited("one callback, no list", 0, (END, "return Counters()")),
    ),
)
