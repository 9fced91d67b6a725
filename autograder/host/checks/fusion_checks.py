"""Checks of passes that fuse: the number of fused calls, unchanged results, and the cost of what is left.

A wrong number in the fused calls is counted where the fusion is asked for. Checks of what must stay leave it aside:
they ask whether that was left alone.
"""

from collections.abc import Callable, Sequence

from autograder.host.artifacts import Artifact, dead_calls
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.fused_calls import differing_literals, erased_write, swaps, with_literals
from autograder.host.kinds.graph import GraphAnswer, times
from autograder.host.kinds.graph_values import require_equal
from autograder.host.kinds.sent_tensors import Sent
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError
from autograder.host.traced import Continuation, Program, Traced, draw_inputs, traced


def rewrites(
    programs: Sequence[Program],
    operator: str,
    *,
    gradients: bool = False,
    together: bool = False,
    continued: bool = False,
) -> Callable[[GraphAnswer, Draw], None]:
    """Return a check that each rewritten program calls `operator` the right number of times and computes the same.

    The programs share its points equally; with `together`, for what must stay, all of them have to be right, but for
    the numbers of their fused calls. With `continued`, for programs that students can read, drawn steps follow their
    outputs.
    """

    def run(answer: GraphAnswer, draw: Draw) -> None:
        more = Continuation.drawn(draw) if continued else None
        share_among(
            programs,
            lambda p: _require_rewritten(
                answer, traced(p, draw, more), operator, draw, gradients=gradients, stays=together
            ),
            where=lambda p: f"In the program {p.name}: ",
            together=together,
        )

    return run


def _require_rewritten(
    answer: GraphAnswer, program: Traced, operator: str, draw: Draw, *, gradients: bool = False, stays: bool = False
) -> Artifact:
    artifact = answer.transform(program)
    miscounted = _miscounted(answer, artifact, program, operator, draw, stays=stays)
    copied = ""
    if not program.program.folds:
        copied = Sent.of_graph(program.graph, program.tensors).copied(artifact)
        program.redraw(draw)  # so that weights that the pass copied into the graph give wrong results
    fresh = artifact.with_tensors(program.tensors)
    if stays:
        fresh = with_literals(fresh, operator, program)
    try:
        for specs in (program.program.inputs, *program.program.others):
            require_equal(answer, program, fresh, draw_inputs(specs, draw), draw, gradients)
    except CheckFailedError as error:
        # too many calls say which one is wrong; too few have nothing to do with the wrong values
        too_many = str(miscounted) if artifact.count(operator) > program.program.fused and miscounted else ""
        fault = differing_literals(fresh, operator, program) or erased_write(artifact, program) or copied
        if not (too_many or fault):
            fault = _swapped(answer, fresh, program, operator, draw)
        reason = "" if too_many or fault else program.program.reason
        said = (too_many, fault, str(error), reason)
        raise CheckFailedError(" ".join(filter(None, said)), changes=True) from None
    if miscounted:
        raise miscounted
    return fresh


def _swapped(answer: GraphAnswer, artifact: Artifact, program: Traced, operator: str, draw: Draw) -> str:
    """Return a sentence about two arguments of the fused calls that stand in each other's place; empty if none do."""
    inputs = draw_inputs(program.program.inputs, draw)
    for swap in swaps(artifact, operator):
        try:
            require_equal(answer, program, swap.artifact, inputs, draw, False)
        except (CheckFailedError, AnswerFailedError):
            continue
        return f"In the fused call {swap.first} and {swap.second} are swapped."
    return ""


def _miscounted(
    answer: GraphAnswer, artifact: Artifact, program: Traced, operator: str, draw: Draw, *, stays: bool
) -> CheckFailedError | None:
    """Return the error of a result that has too few or too many fused calls, or old nodes beside them."""
    asked, found = program.program, artifact.count(operator)
    calls = f"In the program {asked.name} the result calls {operator} {times(found)};"
    if found > (asked.at_most or asked.fused):
        reason = f" {asked.reason}" if asked.reason else ""
        return CheckFailedError(f"{calls} {times(asked.fused)} is right.{reason}")
    if found < asked.fused:
        missed = f" {asked.missed}" if asked.missed else ""
        if not (asked.plain and _is_rewritten(answer, asked.plain, operator, draw, stays=stays)):
            return CheckFailedError(f"{calls} expected {times(asked.fused)}.{missed}", share=found / asked.fused)
    return _leftover(artifact, program, min(found, asked.fused))


def _is_rewritten(answer: GraphAnswer, program: Program, operator: str, draw: Draw, *, stays: bool) -> bool:
    """Return whether the pass fuses this program: then it refuses another one for a reason.

    Raises `CheckFailedError` if the pass changes what this program computes.
    """
    try:
        _require_rewritten(answer, traced(program, draw), operator, draw, stays=stays)
    except CheckFailedError as error:
        if error.changes:
            raise
        return False
    return True


def _leftover(artifact: Artifact, program: Traced, fused: int) -> CheckFailedError | None:
    """Return the error of a result in which a fused call does not replace two or more calls, or leaves them there."""
    before, name = sum(n.op.startswith("call_") for n in program.module.graph.nodes), program.program.name
    enough = before - fused
    if artifact.calls() > enough:
        return CheckFailedError(
            f"In the program {name} the result makes {artifact.calls()} calls, the program {before}; "
            f"at most {enough} should be left. Erase the nodes that the fused call replaces.",
        )
    if len(artifact.dead) > len(dead_calls(program.module.graph)):
        return CheckFailedError(
            f"In the program {name} nothing needs what node {artifact.dead[0]} of the result computes. "
            "Erase the nodes that the fused call replaces.",
        )
    return None


def costs(program: Program, operator: str, *, launches: int) -> Callable[[GraphAnswer, Draw], None]:
    """Return a check that the rewritten program launches at most `launches` operators and moves the minimum of bytes.

    The minimum reads every input once and writes one output of the first input's size. The counts are made in the
    clean worker while it runs the rebuilt graph, and are shown in the report.
    """

    def run(answer: GraphAnswer, draw: Draw) -> None:
        source = traced(program, draw)
        try:
            _require_rewritten(answer, traced(program, draw, Continuation.drawn(draw)), operator, draw)
            artifact = _require_rewritten(answer, source, operator, draw)
        except CheckFailedError as error:  # whose share is for the rewriting, not for its cost
            raise CheckFailedError(str(error), changes=error.changes) from None
        inputs = draw_inputs(program.inputs, draw)
        cost = answer.run(artifact, inputs, count=True).counted
        moved, least = cost.bytes_read + cost.bytes_written, sum(i.nbytes for i in (*inputs, inputs[0]))
        answer.counted.update(
            launches=cost.launches, launches_minimum=launches, bytes_moved=moved, bytes_moved_minimum=least
        )
        if cost.launches > launches or moved > least:
            raise CheckFailedError(
                f"In the program {program.name} the result launches {cost.launches} operators and moves "
                f"{moved:,} bytes; {launches} and {least:,} are enough.",
                share=min(launches / max(1, cost.launches), least / max(1, moved)),
            )

    return run
