"""Checks of passes that simplify a graph: the number of calls, their targets, and unchanged results.

`fusion_checks` asks for fusions to one operator; here the operators are the program's own. The host counts the calls in
the graph that the pass returned. The graph must give the right results on fresh inputs and weights, twice in
succession: a folded constant that the program writes to is right only in the first run.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import fx

from autograder.host import comparison
from autograder.host.artifacts import Artifact
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.callable import Reply, as_tuple
from autograder.host.kinds.graph import GraphAnswer, times
from autograder.host.kinds.graph_values import require_equal
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError
from autograder.host.traced import Continuation, Program, Traced, draw_inputs, traced


@dataclass(frozen=True)
class WrongTurn:
    """A common wrong rewrite, recognised by what its result computes or calls."""

    says: str
    computes: Callable[..., object] | None = None  # the function that the wrong result equals
    calls: int | None = None  # the number of calls that the wrong result is left with
    of_module: Callable[[fx.GraphModule], Callable[..., object] | None] | None = None
    """Makes that function from the program; None where the program has nothing to get wrong in this way."""
    refused: str = ""  # part of the error message that refuses the wrong result as a graph


@dataclass(frozen=True)
class Rewriting:
    """A program, and the expected result of a right pass."""

    program: Program
    calls: int  # nodes that call something
    counts: Mapping[str, int] = field(default_factory=dict)  # target as data, such as "torch.neg", to number of nodes
    expected: Callable[[], Callable[..., object]] | None = None  # builds what the result computes; the program if None
    at_least: int | None = None  # the smallest number of calls that is accepted, if less than `calls`
    tensors: int | None = None  # the expected number of parameters and buffers; not counted if None
    wrong_turns: tuple[WrongTurn, ...] = ()
    warning: str = ""  # what a pass overlooked whose result has other values, for the student
    left: str = ""  # what was probably left in the graph, if there are too many calls or tensors
    behind: int = 0  # how many of the calls are drawn steps behind the program's outputs
    effects: bool = False  # whether the calls in `counts` write or draw, so that a missing one changes the program


Run = Callable[[GraphAnswer, Draw], None]


def rewritten(
    cases: Sequence[Rewriting], *, gradients: bool = False, together: bool = False, continued: bool = False
) -> Run:
    """Return a check that each rewritten program has the right calls and results; the programs share its points.

    With `together`, for what must stay, all of them have to be right. With `continued`, for programs that students can
    read, drawn steps follow their outputs.
    """

    def run(answer: GraphAnswer, draw: Draw) -> None:
        more = Continuation.drawn(draw) if continued else Continuation(())
        share_among(
            [_followed(case, more) for case in cases],
            lambda case: _require_rewritten(answer, case, draw, gradients, more),
            where=lambda case: f"In the program {case.program.name}: ",
            together=together,
        )

    return run


def _followed(case: Rewriting, more: Continuation) -> Rewriting:
    """Return the same case with the calls of a continuation behind each output of its program."""
    if not more.steps:
        return case
    calls = len(more.steps) * len(case.program.trace().graph.output_node().all_input_nodes)

    def followed(turn: WrongTurn) -> WrongTurn:
        made = turn.of_module

        def of_module(module: fx.GraphModule) -> Callable[..., object] | None:
            function = made(module) if made else None
            # what changes the program itself computes the steps already
            return function if function is None or function is module else more.behind(function)

        return replace(
            turn,
            calls=None if turn.calls is None else turn.calls + calls,
            computes=turn.computes and more.behind(turn.computes),
            of_module=made and of_module,
        )

    return replace(
        case,
        calls=case.calls + calls,
        behind=calls,
        at_least=None if case.at_least is None else case.at_least + calls,
        wrong_turns=tuple(map(followed, case.wrong_turns)),
    )


def _require_rewritten(answer: GraphAnswer, case: Rewriting, draw: Draw, gradients: bool, more: Continuation) -> None:
    source = traced(case.program, draw, more)
    artifact = _transformed(answer, source, case)
    if case.program.folds:
        fresh = artifact
    else:
        source.redraw(draw)  # so that weights that the pass copied into the graph give wrong results
        fresh = artifact.with_tensors(source.tensors)
    expected = source
    if case.expected:
        expected = replace(source, module=more.behind_graph(replace(case.program, build=case.expected).trace()))
    for specs in (case.program.inputs, *case.program.others):
        inputs = draw_inputs(specs, draw)
        try:
            first = require_equal(answer, expected, fresh, inputs, draw, gradients)
        except CheckFailedError as error:
            turned = _turned(answer, case, source.module, fresh, inputs)
            raise CheckFailedError(turned or f"{error}{_if_values_differ(case, fresh)}", changes=True) from None
        if not gradients:
            _require_repeatable(answer, first, inputs, case)
    _require_calls(artifact, case)


def _transformed(answer: GraphAnswer, source: Traced, case: Rewriting) -> Artifact:
    try:
        return answer.transform(source)
    except CheckFailedError as error:
        for turn in case.wrong_turns:
            if turn.refused and turn.refused in str(error):
                raise CheckFailedError(f"In the program {case.program.name}: {turn.says}") from None
        raise


def _require_calls(artifact: Artifact, case: Rewriting) -> None:
    name, found = case.program.name, artifact.calls()
    counted = {target: artifact.count(target, unneeded=True) for target in case.counts}
    least = case.calls if case.at_least is None else case.at_least
    if case.tensors is not None and len(artifact.tensors) != case.tensors:
        raise CheckFailedError(
            f"In the program {name} the result holds {len(artifact.tensors)} parameters and buffers; {case.tensors} "
            f"are right.{_because(case, left=len(artifact.tensors) > case.tensors)}"
        )
    if least <= found <= case.calls and counted == dict(case.counts):
        return
    changes = case.effects and any(number < case.counts[target] for target, number in counted.items())
    for turn in case.wrong_turns:
        if turn.calls == found:
            raise CheckFailedError(f"In the program {name}: {turn.says}", changes=changes)
    behind = min(case.behind, found)
    for target, number in counted.items():
        if number != case.counts[target]:
            raise CheckFailedError(
                f"In the program {name} the result calls {target} {times(number)}; expected "
                f"{times(case.counts[target])}.{_because(case)}",
                changes=changes,
            )
    raise CheckFailedError(
        f"In the program {name} the result makes {found - behind} calls; {case.calls - behind} are right"
        f"{f', not counting the {behind} drawn behind its outputs' if behind else ''}."
        f"{_because(case, left=found > case.calls)}"
    )


def _because(case: Rewriting, *, left: bool = False) -> str:
    reason = (left and case.left) or case.program.reason
    return f" {reason}" if reason else ""


def _if_values_differ(case: Rewriting, artifact: Artifact) -> str:
    """Return the end of the message about wrong values; the reason explains those of a pass that changed too much."""
    least = case.calls if case.at_least is None else case.at_least
    too_few = artifact.calls() < least or len(artifact.tensors) < (case.tensors or 0)
    said = case.warning or (case.program.reason if too_few else "")
    return f" {said}" if said else ""


def _turned(
    answer: GraphAnswer, case: Rewriting, module: fx.GraphModule, artifact: Artifact, inputs: tuple[torch.Tensor, ...]
) -> str:
    """Return the sentence of the wrong turn that computes the same as the result; empty if there is none."""
    plain: Callable[..., object] | None
    precise: Callable[..., object] | None
    for turn in case.wrong_turns:
        if turn.of_module is not None:
            plain, precise = map(turn.of_module, (copy.deepcopy(module), copy.deepcopy(module).double()))
        elif turn.computes is not None:
            plain = precise = turn.computes
        else:
            continue
        if plain is None or precise is None:
            continue
        if _computes(answer, plain, precise, artifact, inputs):
            return f"In the program {case.program.name}: {turn.says}"
    return ""


def _computes(
    answer: GraphAnswer,
    plain: Callable[..., object],
    precise: Callable[..., object],
    artifact: Artifact,
    inputs: tuple[torch.Tensor, ...],
) -> bool:
    try:
        found = answer.run(artifact, inputs).outputs
        eagers, truths = as_tuple(plain(*[i.clone() for i in inputs])), as_tuple(precise(*[i.double() for i in inputs]))
        for actual, truth, eager in zip(found, truths, eagers, strict=True):
            comparison.require_close(actual, truth.detach(), eager.detach(), "")
    except (AnswerFailedError, CheckFailedError, RuntimeError, TypeError, ValueError):
        return False
    return True


def _require_repeatable(answer: GraphAnswer, first: Reply, inputs: tuple[torch.Tensor, ...], case: Rewriting) -> None:
    """Require that a second run gives the same outputs, unless the program is in training mode."""
    again = answer.run_again(inputs)
    if case.program.training or all(map(_same, again.outputs, first.outputs)):
        return
    raise CheckFailedError(
        f"In the program {case.program.name} the result gives something else when it is called a second time: it "
        "writes to a tensor that it keeps. A constant that somebody writes to may not be computed beforehand.",
        changes=True,
    )


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left.shape == right.shape and torch.equal(left.nan_to_num(), right.nan_to_num())
