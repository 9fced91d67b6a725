"""Ready-made checks for answers that are functions on tensors.

Each verifies values too, so that none passes for a function that does nothing.
"""

from collections.abc import Callable, Iterable, Sequence

import torch

from autograder.host import comparison
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import CallableAnswer, Case, Reference, as_tuple, promoted, require_outputs
from autograder.host.kinds.misconceptions import Misconception, explained

Cases = Callable[[Draw], Iterable[Case]]
Run = Callable[[CallableAnswer, Draw], None]


def agrees(
    reference: Reference, cases: Cases, names: Sequence[str], misconceptions: Sequence[Misconception] = ()
) -> Run:
    """Return a check that every output of every case equals the reference by the error rule.

    The sentence of the first misconception that explains a failure is the message.
    """

    def run(answer: CallableAnswer, draw: Draw) -> None:
        for case in cases(draw):
            reply = answer.call(case)
            try:
                require_outputs(reply, case, reference, names)
            except CheckFailedError as error:
                raise CheckFailedError(explained(reply, case, names, misconceptions) or str(error)) from None

    return run


def gradients_agree(reference: Reference, cases: Cases, names: Sequence[str], inputs: Sequence[str]) -> Run:
    """Return a check that outputs, and gradients by the first `len(inputs)` arguments, equal the reference's."""

    def run(answer: CallableAnswer, draw: Draw) -> None:
        for case in cases(draw):
            outputs = as_tuple(reference(*case.args, **case.kwargs))
            cotangents = [draw.normal(*o.shape, dtype=o.dtype) for o in outputs]
            reply = answer.call(case, cotangents=cotangents, wrt=range(len(inputs)))
            require_outputs(reply, case, reference, names)
            truths = _gradients(reference, promoted(case), [c.double() for c in cotangents], len(inputs))
            eagers = _gradients(reference, case, cotangents, len(inputs))
            for actual, truth, eager, name in zip(reply.gradients, truths, eagers, inputs, strict=True):
                if actual is None:
                    raise CheckFailedError(
                        f"No gradient reaches {name}; keep every step differentiable (no .detach(), .data or .item())."
                    )
                comparison.require_close(actual, truth, eager, f"the gradient by {name}", case.where)

    return run


def _gradients(
    reference: Reference, case: Case, cotangents: Sequence[torch.Tensor], count: int
) -> tuple[torch.Tensor, ...]:
    leaves = [a.detach().requires_grad_() for a in case.args[:count]]
    outputs = as_tuple(reference(*leaves, *case.args[count:], **case.kwargs))
    return torch.autograd.grad(outputs, leaves, list(cotangents))


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
    """Return a check that calls in a row, the first one again at the end, each give the result for their own inputs."""

    def run(answer: CallableAnswer, draw: Draw) -> None:
        once = list(cases(draw))
        for case in [*once, *once[:1]]:
            require_outputs(answer.call(case), case, reference, names)

    return run


def keeps_calls_apart(reference: Reference, cases: Cases, names: Sequence[str]) -> Run:
    """Return a check that calls in several threads, one a case, each give the result for their own inputs."""

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
