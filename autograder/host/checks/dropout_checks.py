"""Checks of graphs with dropout: the mask is read from the output, and the expected output follows from the mask.

The graph may drop any elements. The checks require the right rate, the right factor for the other elements, and the
same mask in the backward pass. Inputs are chosen so that an output element is zero exactly where it was dropped.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from autograder.host import comparison
from autograder.host.artifacts import Artifact
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import Reply
from autograder.host.kinds.fused_calls import differing_literals
from autograder.host.kinds.graph import GraphAnswer, times
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError
from autograder.host.traced import Program, traced

SIGMAS = 6.0  # a right rate fails once in a hundred million gradings


@dataclass(frozen=True)
class Dropping:
    """A program with dropout, and the formula of its output for a known mask.

    `inputs(draw)` returns inputs for which a zero after the first column means that dropout removed the element. The
    first column of the first input is zero, so neither the output nor its own gradient shows whether dropout removed
    it. `formula(module, inputs, factors)` returns the output when each element is multiplied by its factor.
    """

    program: Program
    p: float
    inputs: Callable[[Draw], tuple[torch.Tensor, ...]]
    formula: Callable[..., torch.Tensor]


def drops(cases: Sequence[Dropping], operator: str, *, gradients: bool = False) -> Callable[[GraphAnswer, Draw], None]:
    """Return a check that the pass rewrites each program to one call of `operator` with the program's dropout."""

    def run(answer: GraphAnswer, draw: Draw) -> None:
        share_among(
            cases,
            lambda case: _require_dropping(answer, case, operator, draw, gradients),
            where=lambda case: f"In the program {case.program.name}: ",
        )

    return run


def _require_dropping(answer: GraphAnswer, case: Dropping, operator: str, draw: Draw, gradients: bool) -> None:
    source = traced(case.program, draw)
    artifact = answer.transform(source)
    if artifact.count(operator) != 1:
        raise CheckFailedError(
            f"In the program {case.program.name} the result calls {operator} {times(artifact.count(operator))}; "
            f"expected once. {case.program.missed}".strip()
        )
    source.redraw(draw)
    fresh = artifact.with_tensors(source.tensors)
    trained = _Trained(case, source.module, case.inputs(draw))
    try:
        kept = [trained.mask_of_one_run(answer, fresh, draw, gradients) for _ in range(2)]
        if torch.equal(*kept):
            raise CheckFailedError(f"In the program {case.program.name} two runs drop the same elements.")
    except CheckFailedError as error:
        said = (differing_literals(artifact, operator, source), str(error))
        raise CheckFailedError(" ".join(filter(None, said)), changes=True) from None


@dataclass(frozen=True)
class _Trained:
    """A program in training mode with inputs of this grading, as the reference for the checked graph."""

    case: Dropping
    module: fx.GraphModule
    inputs: tuple[torch.Tensor, ...]

    @property
    def where(self) -> str:
        return f" in the program {self.case.program.name} while training"

    def mask_of_one_run(self, answer: GraphAnswer, artifact: Artifact, draw: Draw, gradients: bool) -> torch.Tensor:
        """Run the graph, check its results with the mask read from its output, and return the mask."""
        expected = self.case.formula(self.module, self.inputs, torch.ones_like(self.inputs[0]))
        cotangents = [draw.normal(*expected.shape)] if gradients else []
        try:
            reply = answer.run(artifact, self.inputs, cotangents=cotangents, training=True)
        except AnswerFailedError as error:
            raise CheckFailedError(f"The transformed graph does not run{self.where}: {error.message}") from None
        if len(reply.outputs) != 1:
            raise CheckFailedError(f"The transformed graph has {len(reply.outputs)} outputs{self.where}; expected 1.")
        output = reply.outputs[0]
        comparison.require_form(output, expected, "The output")
        kept = output != 0
        kept[..., 0] = True
        self._require_rate(kept[..., 1:])
        self._require_formula(reply, kept.to(self.inputs[0].dtype) / (1 - self.case.p), cotangents)
        return kept

    def _require_rate(self, kept: torch.Tensor) -> None:
        p, dropped = self.case.p, 1 - float(kept.double().mean())
        if dropped == 0:
            raise CheckFailedError(
                f"Nothing falls out{self.where}, where p is {p:g}. Hand on whether dropout is in training, too."
            )
        if abs(dropped - p) > SIGMAS * math.sqrt(p * (1 - p) / kept.numel()):
            raise CheckFailedError(
                f"A share of {dropped:.2f} falls out{self.where}, where p is {p:g}. Hand on the program's own p."
            )

    def _require_formula(self, reply: Reply, factors: torch.Tensor, cotangents: list[torch.Tensor]) -> None:
        truth, truths = self._formula(copy.deepcopy(self.module).double(), factors, cotangents, torch.float64)
        eager, eagers = self._formula(self.module, factors, cotangents, self.inputs[0].dtype)
        comparison.require_close(reply.outputs[0], truth, eager, "The output", self.where)
        for i, (found, exact, plain) in enumerate(zip(reply.gradients, truths, eagers, strict=True)):
            if found is None:
                raise CheckFailedError(f"An input has no gradient{self.where}.")
            if i == 0 and found.shape == plain.shape:
                found, exact, plain = found[..., 1:], exact[..., 1:], plain[..., 1:]
            what = "The gradient by an input, with the output's mask,"
            comparison.require_close(found, exact, plain, what, self.where)

    def _formula(
        self, module: fx.GraphModule, factors: torch.Tensor, cotangents: list[torch.Tensor], dtype: torch.dtype
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        leaves = [i.detach().to(dtype).requires_grad_(bool(cotangents)) for i in self.inputs]
        output = self.case.formula(module, leaves, factors.to(dtype))
        gradients = torch.autograd.grad(output, leaves, [c.to(dtype) for c in cotangents]) if cotangents else ()
        return output.detach(), gradients
