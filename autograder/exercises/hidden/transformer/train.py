"""Hidden checks and controls of exercise 01.5."""

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.transformer import train as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, HiddenPart
from autograder.host.kinds.module import ModuleAnswer
from autograder.host.session import AnswerFailedError


def _held_out(answer: ModuleAnswer, draw: Draw) -> None:
    """Check the loss of the answer's weights in our model, on unseen text of the same language."""
    run = visible.one_run(answer, draw)
    found = visible.model_loss(run.state, run.text.held_out_hidden, run.text.held_out_labels)
    baseline = run.text.unigram_nats()
    if not found < baseline - visible.CLEARLY_NATS:
        raise CheckFailedError(
            f"On text that it never saw, the model loses {found:.2f} nats a token, and the baseline {baseline:.2f}."
        )


def _again(answer: ModuleAnswer, draw: Draw) -> None:
    """Check that the same seed gives the same weights, and another seed gives other weights that are also trained."""
    run = visible.one_run(answer, draw)
    if visible.largest_move(run.state) == 0:
        raise CheckFailedError("The weights are as they were made: nothing was trained, with whatever seed.")
    same = visible.trained(answer, run.text, run.seed).parameters
    for _ in range(visible.TRIES if visible.learned(run.state, run.text) else 1):
        other = (run.seed + draw.integer(1, visible.LARGEST_SEED)) % (visible.LARGEST_SEED + 1)
        others = visible.trained(answer, run.text, other).parameters
        if visible.learned(others, run.text):
            break
    if visible.learned(run.state, run.text) and not visible.learned(others, run.text):
        raise CheckFailedError("The model did not learn with another seed as well.")
    if any(not torch.equal(run.state[name], same[name]) for name in same):
        raise CheckFailedError(
            "Two runs with the same seed gave other weights; call torch.manual_seed(seed) before the model is made."
        )
    if all(torch.equal(run.state[name], others[name]) for name in others):
        raise CheckFailedError("A run with another seed gave the same weights.")


def _moved(answer: ModuleAnswer, draw: Draw) -> None:
    """Check that every part of the model was trained: no weight that begins at 0 or 1 stays there."""
    run = visible.one_run(answer, draw)
    for name, value in run.state.items():
        if not name.endswith(("bias", "norm.weight")) or "key.bias" in name:  # its gradient is only rounding
            continue
        if float((value - float("norm.weight" in name)).abs().max()) < 1e-4:
            raise CheckFailedError(f"`{name}` is as it was before training.")
    _one_step(answer, run)


def _one_step(answer: ModuleAnswer, run: visible.Run) -> None:
    """Check that one batch moves the biases, which begin at 0, all equally far, as the first step of AdamW does.

    Nothing is said of answers that do not run on one batch, or whose learning rate begins at 0.
    """
    try:
        state = visible.trained(answer, run.text.until(1), run.seed).parameters
    except AnswerFailedError as error:
        if error.fatal:
            raise
        return
    biases = torch.cat([state[name].flatten().abs() for name in state if name.endswith("norm.bias")])
    moved = float(biases.median())
    if moved > 0 and float(((biases - moved).abs() < 0.02 * moved).double().mean()) < 0.8:
        raise CheckFailedError(
            "One batch moved the biases of the LayerNorms by different amounts. The first step of AdamW moves each by "
            "the learning rate: take one step of torch.optim.AdamW a batch, no more and of no other optimiser."
        )


NOT_CALLED = "the grader takes the weights and never calls the module"
SPOILT_OUTPUTS = (
    "zeros",
    "ones",
    "copy of an input",
    "previous output",
    "first output, for ever",
    "wrong in the first output only",
    "wrong in the last output only",
    "wrong in one element",
    "NaN",
    "one precision lower",
    "scalar",
    "one dimension more",
    "another dtype",
    "one output more",
    "without a gradient",
    "writes into an input",
    "a clone",
)

SECOND_STEP = """            F.cross_entropy(model(tokens).flatten(0, 1), wanted.flatten()).backward()
            optimizer.step()
"""

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("held-out text", "held-out loss", 2, _held_out),
        Check("runs again, with the same seed and another", "seeds", 2, _again),
        Check("every weight was trained", "weights", 1, _moved),
    ),
    controls=(
        ANSWERS.reference(12),
        ANSWERS.edited("logs the learning rate", 12, ("length.item()", "optimizer.param_groups[0]['lr']")),
        ANSWERS.edited(
            "steps that depend on how many will come",
            12,
            ("lr=0.01)", "lr=0.01)\n    plan = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, len(hidden) + 1)"),
            ("optimizer.step()", "optimizer.step()\n            plan.step()"),
        ),
        *(
            ANSWERS.edited(
                f"logs the learning rate of the next step, which begins at {first}",
                12,
                (
                    "lr=0.01)",
                    f"lr=0.01)\n    plan = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1, {scale}))",
                ),
                ("optimizer.step()", "optimizer.step()\n            plan.step()"),
                ("length.item()", "plan.get_last_lr()[0]"),
            )
            for first, scale in (("an eighth", "(s + 1) / 8"), ("0", "s / 8"))
        ),
        ANSWERS.edited("a second scalar that is 1", 10, ("length.item()", "1.0")),
        ANSWERS.edited("a second scalar that counts", 10, ("length.item()", "float(step)")),
        ANSWERS.edited("without a step of the optimiser", 5, ("optimizer.step()", "pass")),
        ANSWERS.edited("begins with the fifteenth batch", 8, ("zip(hidden, labels", "zip(hidden[14:], labels[14:]")),
        ANSWERS.edited(
            "two steps a batch",
            11,
            ("            optimizer.step()\n", "            optimizer.step()\n" + SECOND_STEP),
        ),
        ANSWERS.edited(
            "seeded too late",
            10,
            ("    torch.manual_seed(seed)\n", ""),
            ("    with Summ", "    torch.manual_seed(seed)\n    with Summ"),
        ),
    ),
    right_here=dict.fromkeys(SPOILT_OUTPUTS, NOT_CALLED),
    equivalent={
        "torch.optim.AdamW(model.parameters(), lr=0.01) -> torch.optim.AdamW(model.parameters())": "slower, "
        "but it learns",
        "writer.add_graph(model, hidden[0]): 0 -> 1": "any batch shows the graph",
        "for step, (tokens, wanted) in enumerate(zip(hidden, labels, strict=True), start=1): 1 -> 2": "steps may be "
        "counted from anywhere",
        "enumerate(zip(hidden, labels, strict=True), start=1) -> enumerate(zip(hidden, labels, strict=True))": "as "
        "above",
        "True -> False": "there are as many labels as texts",
        "zip(hidden, labels, strict=True) -> zip(hidden, labels)": "as above",
        "1.0 -> 2.0": "how far gradients are clipped is free",
        "'loss/train' -> 'loss/train_'": "names of scalars are free",
        "'gradient_length' -> 'gradient_length_'": "names of scalars are free",
    },
)
