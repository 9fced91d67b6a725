"""Hidden checks and controls of exercise 15.4."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.launch_overhead.replay_by_shape import agree
from autograder.exercises.launch_overhead.train_by_replay import STEPS, Trained
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Control, HiddenPart
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.point_shares import share_among


def _optimizer_state(answer: AnalysisAnswer, draw: Draw) -> None:
    def require(name: str) -> None:
        Trained(answer, draw, name).require_losses(
            f"The optimizer is {name}. Its state must exist before the capture, and be zero as before a first step."
        )

    share_among(("SGD with momentum", "RMSprop"), require, noun="optimizers", together=True)


def _gradients(answer: AnalysisAnswer, draw: Draw) -> None:
    if name := Trained(answer, draw).changed("gradients"):
        raise CheckFailedError(
            f"The tensor that was the gradient of `{name}` before does not hold the gradient of step {STEPS}. "
            "Gradients stay in their memory with optimizer.zero_grad(set_to_none=False)."
        )


def _losses_stay(answer: AnalysisAnswer, draw: Draw) -> None:
    machine = Trained(answer, draw).machine
    for step, call in enumerate(machine.calls, 1):
        if not agree(machine.later(call), call.output):
            raise CheckFailedError(
                f"The loss of step {step} was overwritten by a later step. Each replay writes the same memory: return "
                "a clone()."
            )
    if count := sum(call.host_reads for call in machine.calls):
        raise CheckFailedError(
            f"In {STEPS} steps the host read {count} values from tensors, as .item() does. Return the loss as a "
            "tensor; whoever needs the number reads it, as seldom as they like."
        )


def _no_trace(answer: AnalysisAnswer, draw: Draw) -> None:
    Trained(answer, draw, dropout=0.3).require_losses(
        "The model has dropout: the warm-up draws numbers, so set the random state from before it again."
    )
    Trained(answer, draw, running=True).require_losses(
        "The model has a buffer with a running mean: put back all of model.state_dict(), not the parameters alone."
    )


ANSWERS = Answers(__name__)
RESTORE = "for name, value in model.state_dict().items():\n        value.copy_(before[name])"
RESET = "for state in optimizer.state.values():\n        for value in state.values():\n            value.zero_()"
MOMENTUM = (
    "for state in optimizer.state.values():\n        if state.get('momentum_buffer') is not None:\n"
    "            state['momentum_buffer'].zero_()"
)
WARM = "with warm_up():\n        (train(), train())"
EAGER = """\
def replayed_training(model, optimizer, example):
    def step(batch):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
"""

HIDDEN = HiddenPart(
    checks=(
        Check("state of the optimizer", "optimizer", 1, _optimizer_state),
        Check("gradients stay in their memory", "gradients", 1, _gradients),
        Check("losses stay, and are not read", "losses", 1, _losses_stay),
        Check("a warm-up leaves no trace", "warm-up", 1, _no_trace),
    ),
    controls=(
        ANSWERS.reference(8),
        *ANSWERS.styles(8),
        ANSWERS.edited("three warm-ups", 8, ("(train(), train())", "[train() for _ in range(3)]")),
        ANSWERS.edited(
            "gradients one by one",
            8,
            (
                "optimizer.zero_grad(set_to_none=False)",
                "for each in model.parameters():\n            each.grad.zero_()",
            ),
        ),
        Control("eager", EAGER, 0),
        ANSWERS.edited("no replay", 0, ("        graph.replay()\n", "")),
        ANSWERS.edited("no warm-up", 0, (WARM, "pass")),
        ANSWERS.edited("one warm-up", 7, ("(train(), train())", "train()")),
        ANSWERS.edited("weights of the warm-up", 2, (RESTORE, "pass")),
        ANSWERS.edited(
            "parameters only",
            7,
            ("in model.state_dict().items()}", "in model.named_parameters()}"),
            (
                RESTORE,
                "for name, value in model.named_parameters():\n        value.data.copy_(before[name])",
            ),
        ),
        ANSWERS.edited("before is no copy", 2, ("name: value.clone()", "name: value")),
        ANSWERS.edited("state of the warm-up", 7, (RESET, "pass")),
        ANSWERS.edited("momentum alone", 7, (RESET, MOMENTUM)),
        ANSWERS.edited("a list of Python", 7, ("return loss.clone()", "return loss.tolist()")),
        ANSWERS.edited("state cleared", 7, (RESET, "optimizer.state.clear()")),
        ANSWERS.edited("new gradients", 7, ("set_to_none=False", "set_to_none=True")),
        ANSWERS.edited("gradients add up", 2, ("        optimizer.zero_grad(set_to_none=False)\n", "")),
        ANSWERS.edited("no clone of the loss", 7, ("return loss.clone()", "return loss")),
        ANSWERS.edited("a number of Python", 7, ("return loss.clone()", "return loss.item()")),
        ANSWERS.edited("reads the loss", 7, ("return loss.clone()", "return torch.tensor(loss.item())")),
        ANSWERS.edited("the example is static", 7, ("example.clone()", "example")),
        ANSWERS.edited("batch bound anew", 2, ("static.copy_(batch)", "static = batch")),
        ANSWERS.edited("random state after the warm-up", 7, ("torch.set_rng_state(random_state)", "pass")),
        ANSWERS.edited("captures the forward only", 0, ("        loss.backward()\n        optimizer.step()\n", "")),
    ),
)
