"""Ready-made checks for answers that are functions on tensors.

Each check also verifies values, so a function that does nothing passes no check.
"""

from collections.abc import Callable, Iterable, Sequence

import torch

from autograder.host import comparison
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import (
    CallableAnswer,
    Case,
    Reference,
    Reply,
    as_tuple,
    gradients_of,
    require_gradients,
    require_outputs,
)
from autograder.host.kinds.misconceptions import Misconception, explained

Cases = Callable[[Draw], Iterable[Case]]
Run = Callable[[CallableAnswer, Draw], None]
Tensors = Sequence[torch.Tensor]
Gradients = Callable[[Tensors], Tensors]
"""The reference's gradients, from those of its outputs."""
Mistake = tuple[Callable[[Gradients, Tensors, Case], Tensors], str]
"""What wrong gradients follow from those of the outputs, and the sentence about it."""
NEAR = 1e-3  # relative; far above rounding, far below a mistake


def agrees(
    reference: Reference, cases: Cases, names: Sequence[str], misconceptions: Sequence[Misconception] = ()
) -> Run:
    """Return a check that every output of every case equals the reference by the error rule.

    If a misconception explains a failure, the sentence of the first such misconception is the message.
    """

    def run(answer: CallableAnswer, draw: Draw) -> None:
        for case in cases(draw):
            reply = answer.call(case)
            try:
                require_outputs(reply, case, reference, names)
            except CheckFailedError as error:
                raise CheckFailedError(explained(reply, case, names, misconceptions) or str(error)) from None

    return run


def _random(draw: Draw, output: torch.Tensor) -> torch.Tensor:
    return draw.normal(*output.shape, dtype=output.dtype)


def gradients_agree(
    reference: Reference,
    cases: Cases,
    names: Sequence[str],
    inputs: Sequence[str],
    mistakes: Sequence[Mistake] = (),
    *,
    grads: Callable[[Draw, torch.Tensor], torch.Tensor] = _random,
) -> Run:
    """Return a check that outputs, and gradients by the first `len(inputs)` arguments, equal the reference's.

    `grads` draws the gradient of an output. A mistake that gives the same gradients explains the failure.
    """

    def missing(number: int) -> str:
        return f"No gradient reaches {inputs[number]}; keep every step differentiable (no .detach(), .data or .item())."

    def run(answer: CallableAnswer, draw: Draw) -> None:
        for case in cases(draw):
            outputs = as_tuple(reference(*case.args, **case.kwargs))
            cotangents = [grads(draw, o) for o in outputs]
            reply = answer.call(case, cotangents=cotangents, wrt=range(len(inputs)))
            require_outputs(reply, case, reference, names)
            wanted = [f"the gradient by {name}" for name in inputs]
            try:
                require_gradients(reply, case, reference, cotangents, wanted, missing)
            except CheckFailedError as error:
                raise CheckFailedError(_mistaken(reply, case, reference, cotangents, mistakes) or str(error)) from None

    return run


def _mistaken(reply: Reply, case: Case, reference: Reference, cotangents: Tensors, mistakes: Sequence[Mistake]) -> str:
    """Return the sentence of the first mistake that gives the gradients of the reply; empty if there is none."""
    found = [each for each in reply.gradients if each is not None]

    def gradients(of_outputs: Tensors) -> Tensors:
        return gradients_of(case, reference, of_outputs, len(reply.gradients))

    for mistake, says in mistakes:
        wrong = mistake(gradients, cotangents, case)
        pairs = zip(found, wrong, strict=False)
        if len(found) == len(wrong) and all(comparison.alike(f, w, rtol=NEAR, atol=NEAR) for f, w in pairs):
            return says
    return ""


def leaves_inputs_alone(reference: Reference, cases: Cases, names: Sequence[str]) -> Run:
    """Return a check that the call changes none of its inputs, and that no output lies in an input's memory."""

    def run(answer: CallableAnswer, draw: Draw) -> None:
        for case in cases(draw):
            reply = answer.call(case)
            if reply.mutated:
                raise CheckFailedError(
                    f"The function wrote into its input number {reply.mutated[0]}; "
                    "use out-of-place operators (mul, not mul_)."
                )
            require_outputs(reply, case, reference, names)
            if reply.aliases:
                raise CheckFailedError(
                    f"{names[reply.aliases[0]]} shares memory with an input; return a tensor of its own."
                )

    return run


def remembers_nothing(reference: Reference, cases: Cases, names: Sequence[str]) -> Run:
    """Return a check that repeated calls, the first one again at the end, each give the result for their own inputs."""

    def run(answer: CallableAnswer, draw: Draw) -> None:
        once = list(cases(draw))
        for case in [*once, *once[:1]]:
            require_outputs(answer.call(case), case, reference, names)

    return run


def keeps_calls_apart(reference: Reference, cases: Cases, names: Sequence[str]) -> Run:
    """Return a check that runs each case in its own thread and compares every result with the reference."""

    def run(answer: CallableAnswer, draw: Draw) -> None:
        once = list(cases(draw))
        for case, replies in zip(once, answer.call_concurrently(once), strict=True):
            try:
                for reply in replies:
                    require_outputs(reply, case, reference, names)
            except CheckFailedError as error:
                raise CheckFailedError(
                    f"{error} In another thread the function was running on other inputs: keep nothing outside of it."
                ) from None

    return run
