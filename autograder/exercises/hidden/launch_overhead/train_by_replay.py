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
    trained = Trained(answer, draw)
    for step, call in enumerate(trained.machine.calls, 1):
        if not agree(trained.machine.later(call), call.output):
            raise CheckFailedError(
                f"The loss of step {step} was overwritten by a later step. Each replay writes the same memory: return "
                "a clone()."
            )
        if call.was_read:
            raise CheckFailedError(
                f"The loss of step {step} is a number that the host read, as .item() does. Each read waits for the "
                "device: return the loss as a tensor, and who needs the number reads it later."
            )
    trained.require_losses("Return the loss of the step that ran.")


ANSWERS = Answers(__name__)
ZEROS = "Its state begins with zeros."
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
        Check("state of the optimizer", "optimizer", 2, _optimizer_state),
        Check("gradients stay in their memory", "gradients", 0.5, _gradients),
        Check("losses stay, and are not read", "losses", 1, _losses_stay),
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
        ANSWERS.edited("one warm-up", 6, ("(train(), train())", "train()"), trap=ZEROS),
        ANSWERS.edited("weights of the warm-up", 0.5, (RESTORE, "pass")),
        ANSWERS.edited(
            "parameters only",
            6,
            ("in model.state_dict().items()}", "in model.named_parameters()}"),
            (
                RESTORE,
                "for name, value in model.named_parameters():\n        value.data.copy_(before[name])",
            ),
        ),
        ANSWERS.edited("before is no copy", 0.5, ("name: value.clone()", "name: value")),
        ANSWERS.edited("state of the warm-up", 6, (RESET, "pass"), trap=ZEROS),
        ANSWERS.edited("momentum alone", 6, (RESET, MOMENTUM), trap=ZEROS),
        ANSWERS.edited("a list of Python", 7, ("return loss.clone()", "return loss.tolist()")),
        ANSWERS.edited("state cleared", 6, (RESET, "optimizer.state.clear()"), trap=ZEROS),
        ANSWERS.edited("new gradients", 7.5, ("set_to_none=False", "set_to_none=True")),
        ANSWERS.edited("gradients add up", 0.5, ("        optimizer.zero_grad(set_to_none=False)\n", "")),
        ANSWERS.edited("no clone of the loss", 7, ("return loss.clone()", "return loss")),
        ANSWERS.edited("a number of Python", 7, ("return loss.clone()", "return loss.item()")),
        ANSWERS.edited("reads the loss", 7, ("return loss.clone()", "return torch.tensor(loss.item())")),
        ANSWERS.edited("the example is static", 7.5, ("example.clone()", "example")),
        ANSWERS.edited("the name bound to the batch", 0.5, ("static.copy_(batch)", "static = batch")),
        ANSWERS.edited("random state after the warm-up", 6, ("torch.set_rng_state(random_state)", "pass")),
        ANSWERS.edited("captures the forward only", 0, ("        loss.backward()\n        optimizer.step()\n", "")),
    ),
)
