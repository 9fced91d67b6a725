"""Hidden checks and controls of exercise 16.1."""

import math

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.lightning_training.port_trainer import Fitted, equal_losses
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, HiddenPart
from autograder.host.kinds.analysis import AnalysisAnswer

NEAR_NATS = 1e-3
EVEN_MEAN = "Batches have different numbers of letters to guess: give self.log their number as batch_size."


def _held_out(answer: AnalysisAnswer, draw: Draw) -> None:
    """Check the logged held-out loss against the weights after training."""
    fitted = Fitted(answer, draw, 0.3)
    _, values = fitted.points("loss/held_out")
    losses = fitted.loss_of(fitted.state, fitted.run["held_out"])
    counts = [int((labels >= 0).sum()) for _, labels in fitted.run["held_out"]]
    right = sum(loss * count for loss, count in zip(losses, counts, strict=True)) / sum(counts)
    found = values[-1] if values else math.nan
    if not math.isclose(found, right, abs_tol=NEAR_NATS):
        even = math.isclose(found, sum(losses) / len(losses), abs_tol=NEAR_NATS)
        raise CheckFailedError(
            f"`loss/held_out` is {found:.4f}; the trained weights lose {right:.4f} a letter on all held-out batches. "
            + (EVEN_MEAN if even else 'Compute it in validation_step, on run["held_out"].')
        )


ANSWERS = Answers(__name__)
OVER_TOKENS = "`loss/held_out`, the mean over all tokens to guess"
SEEDED = "torch.manual_seed(run['seed'] + self.global_step)\n            "
FIRST_SEED = "torch.manual_seed(run['seed'])\n            "

HIDDEN = HiddenPart(
    checks=(
        Check("losses equal with dropout", "dropout", 2, equal_losses(0.3, "With dropout")),
        Check("the loss on held-out batches", "held-out loss", 3, _held_out),
    ),
    controls=(
        ANSWERS.reference(10),
        ANSWERS.file("manual optimisation", 10),
        ANSWERS.file("classes outside", 10),
        ANSWERS.edited("the step from the batch", 10, ("self.global_step", "batch_idx")),
        ANSWERS.edited(
            "log_dict", 10, ("self.log('loss/train', loss)", "self.log_dict({'loss/train': loss.detach()})")
        ),
        ANSWERS.edited("a dict of the loss", 10, ("return loss\n", "return {'loss': loss}\n")),
        ANSWERS.edited(
            "labels flattened by view",
            10,
            ("labels.flatten()", "labels.reshape(-1), ignore_index=-100, reduction='mean'"),
        ),
        ANSWERS.edited(
            "trains the model's parameters", 10, ("AdamW(self.parameters()", "AdamW(self.model.parameters()")
        ),
        ANSWERS.file("the loop as it was", 0),
        ANSWERS.edited("no seed for dropout", 8, (SEEDED, "")),
        ANSWERS.edited("one seed for all steps", 8, (" + self.global_step", "")),
        ANSWERS.edited("weights without seed", 5, (FIRST_SEED, "")),
        ANSWERS.edited("shuffled", 5, ("DataLoader(run['train'], ", "DataLoader(run['train'], shuffle=True, ")),
        ANSWERS.edited(
            "one pair a batch more",
            5,
            ("DataLoader(run['train'], batch_size=None", "DataLoader(run['train'][1:], batch_size=None"),
        ),
        ANSWERS.edited("SGD", 5, ("optim.AdamW", "optim.SGD")),
        ANSWERS.edited("a smaller rate", 5, ("lr=0.01", "lr=0.001")),
        ANSWERS.edited(
            "batches weigh the same",
            7,
            ("batch_size=int((batch[1] >= 0).sum())", "batch_size=1"),
            trap=OVER_TOKENS,
        ),
        ANSWERS.edited(
            "validates on what it learned",
            7,
            ("DataLoader(run['held_out'], ", "DataLoader(run['train'], "),
            trap=OVER_TOKENS,
        ),
        ANSWERS.edited("another tag", 8, ("'loss/train'", "'train_loss'")),
        ANSWERS.edited(
            "logged once an epoch",
            8,
            ("self.log('loss/train', loss)", "self.log('loss/train', loss, on_step=False, on_epoch=True)"),
        ),
        ANSWERS.edited("no logger", 5, (", TensorBoardLogger(run['folder'])", "")),
        ANSWERS.edited("logs another number", 8, ("self.log('loss/train', loss)", "self.log('loss/train', loss / 2)")),
    ),
)
