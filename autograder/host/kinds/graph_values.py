"""Hold what a rebuilt graph computes against its program: outputs, gradients, and writes into inputs."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Protocol

import torch

from autograder.host import comparison
from autograder.host.artifacts import Artifact
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import Reply, as_tuple
from autograder.host.session import AnswerFailedError
from autograder.host.traced import Traced, any_fp64
from course_lib.errors import GraphError
from course_lib.kernels.replayed_draws import ReplayedDraws
from course_lib.verify.error_rule import ROUNDINGS


class RunsGraphs(Protocol):
    """What runs a rebuilt graph in a worker, as `kinds.graph.GraphAnswer` does."""

    def run(
        self,
        artifact: Artifact,
        inputs: Sequence[torch.Tensor],
        *,
        cotangents: Sequence[torch.Tensor] = (),
        training: bool = False,
        draws: int | None = None,
        by: Sequence[str] = (),
    ) -> Reply:
        """Run the graph on `inputs`; with `cotangents` also run backward."""


def require_equal(
    answer: RunsGraphs,
    program: Traced,
    artifact: Artifact,
    inputs: tuple[torch.Tensor, ...],
    draw: Draw,
    gradients: bool,
    *,
    draws: int | None = None,
    by_position: Sequence[int] = (),
) -> Reply:
    """Run a rebuilt graph and return its reply; raises `CheckFailedError` unless it computes the same as `program`.

    With `draws`, both drop the elements that follow from this seed; otherwise neither may draw random numbers. The
    draws numbered in `by_position` have masks as the answer's own kernels have them, see `ReplayedDraws`.
    """
    with _told(artifact, program):
        shapes = ", ".join(str(tuple(i.shape)) for i in inputs)
        where = f" in the program {program.program.name} with inputs of shape {shapes}"
        by = _parameters(program, artifact) if gradients else []
        replayed = nullcontext if draws is None else partial(ReplayedDraws, draws, by_position)
        eagers, eager_leaves = _reference(program, inputs, by, gradients, replayed)
        truths, truth_leaves = _reference(program, [i.double() for i in inputs], by, gradients, replayed)
        cotangents = [draw.normal(*o.shape, dtype=o.dtype) for o in eagers] if gradients else []
        try:
            training = program.program.training
            reply = answer.run(artifact, inputs, cotangents=cotangents, training=training, draws=draws, by=by)
        except AnswerFailedError as error:
            raise CheckFailedError(f"The transformed graph does not run{where}: {error.message}") from None
        _require_count(reply, len(eagers), where)
        for actual, truth, eager in zip(reply.outputs, truths, eagers, strict=True):
            magnitude = _magnitude(truth.detach(), actual.dtype, inputs)
            comparison.require_close(actual, truth.detach(), eager.detach(), "The output", where, magnitude=magnitude)
        _require_same_mutation(reply, inputs, program, where)
        if gradients:
            eager_grads = torch.autograd.grad(eagers, eager_leaves, cotangents, allow_unused=True)
            truth_grads = torch.autograd.grad(truths, truth_leaves, [c.double() for c in cotangents], allow_unused=True)
            names = ["an input"] * len(inputs) + [f"`{path}`" for path in by]
            require_gradients(reply, truth_grads, eager_grads, names, where)
        return reply


def _require_count(reply: Reply, outputs: int, where: str) -> None:
    if len(reply.outputs) != outputs:
        raise CheckFailedError(f"The transformed graph has {len(reply.outputs)} outputs{where}; expected {outputs}.")


@contextmanager
def _told(artifact: Artifact, program: Traced) -> Iterator[None]:
    """Add to an error that the result changes what is computed, and which input it does not read."""
    try:
        yield
    except CheckFailedError as error:
        raise CheckFailedError(f"{error}{_unread(artifact, program)}", changes=True) from None


def _unread(artifact: Artifact, program: Traced) -> str:
    """Return a sentence about an input that the program reads and the result does not; empty if there is none."""
    try:
        result = artifact.rebuilt().graph
    except GraphError:  # of arguments that were changed for a message, and are too many now
        return ""
    inputs = (graph.find_nodes(op="placeholder") for graph in (result, program.module.graph))
    names = [before.name for after, before in zip(*inputs, strict=False) if before.users and not after.users]
    return f" The result does not read the input `{names[0]}`." if names else ""


def _magnitude(truth: torch.Tensor, dtype: torch.dtype, inputs: Sequence[torch.Tensor]) -> float:
    """Return the magnitude for `require_close` where an input is narrower than the output.

    What is computed from such an input is rounded at its dtype, and a fused operator rounds otherwise than eager.
    """
    dtypes = [d for d in (dtype, *(i.dtype for i in inputs)) if d.is_floating_point]
    allowed = {d: ROUNDINGS.get(d, 4.0) * torch.finfo(d).eps for d in dtypes}
    finite = truth.abs()[torch.isfinite(truth)]
    if dtype not in allowed or max(allowed.values()) <= allowed[dtype] or not finite.numel():
        return 0.0
    return float(finite.max()) * max(allowed.values()) / allowed[dtype]


def _parameters(program: Traced, artifact: Artifact) -> list[str]:
    """Return the parameters of the program, except tied ones, that are parameters of the result, too."""
    if program.program.folds:
        return []
    paths = [path for path, parameter in program.module.named_parameters(remove_duplicate=False)]
    tied = Counter(map(id, map(program.module.get_parameter, paths)))
    known = {path for path, entry in artifact.graph["tensors"].items() if entry["parameter"]}
    return [path for path in paths if path in known and tied[id(program.module.get_parameter(path))] == 1]


def _reference(
    program: Traced,
    inputs: Sequence[torch.Tensor],
    by: Sequence[str],
    gradients: bool,
    replayed: Callable[[], AbstractContextManager[object]],
) -> tuple[tuple[torch.Tensor, ...], list[torch.Tensor]]:
    """Run the program; return its outputs, and the leaves to differentiate by: the inputs, and the parameters `by`."""
    leaves = [i.detach().clone().requires_grad_(gradients) for i in inputs]
    parameters = program.leaves(by, in_fp64=any_fp64(inputs))
    with replayed():
        outputs = as_tuple(program.reference(*leaves, parameters=parameters))
    return outputs, [*leaves, *parameters.values()]


def require_gradients(
    reply: Reply,
    truths: Sequence[torch.Tensor | None],
    eagers: Sequence[torch.Tensor | None],
    names: Sequence[str],
    where: str,
) -> None:
    """Compare gradients by magnitudes of all together, since one alone may consist of rounding errors."""
    largest = max((float(truth.abs().max()) for truth in truths if truth is not None and truth.numel()), default=0.0)
    for found, truth, eager, name in zip(reply.gradients, truths, eagers, names, strict=True):
        if truth is None or eager is None:
            continue
        if found is None:
            raise CheckFailedError(f"No gradient reaches {name}{where}; keep every step differentiable.")
        magnitude = 0.0 if name == "an input" else largest
        comparison.require_close(found, truth, eager, f"The gradient by {name}", where, magnitude=magnitude)


def _require_same_mutation(reply: Reply, inputs: Sequence[torch.Tensor], program: Traced, where: str) -> None:
    if reply.mutated != program.mutated(inputs):
        raise CheckFailedError(
            f"The transformed graph writes into its inputs{where} where the program does not, or the reverse."
        )
