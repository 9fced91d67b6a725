"""Exercise 05.1: insert a node after another one without making the new node read itself."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch.nn import functional as F

from autograder.host import comparison
from autograder.host.checks.rewrite_checks import Rewriting, Run, WrongTurn, rewritten
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import as_tuple
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.session import AnswerFailedError
from autograder.host.traced import Continuation, Program, TensorSpec, draw_inputs, traced

ROWS = TensorSpec((3, 4))
CYCLE = WrongTurn(
    "the new node reads itself. `replace_all_uses_with` redirects every reader of relu, and the new node is one of "
    "them: leave it out.",
    refused="no earlier node has that name",
)

COMPILE = "call `recompile()` on the module after the last change of its graph."
UNWRITTEN = "torch._library.custom_ops"
AS_OPERATOR = (
    "fx cannot write the call of an operator's Python object, such as those in `course_lib.kernels`, as code. Let the "
    "node call the operator in `torch.ops.course_lib`."
)


def inserting(
    name: str,
    program: Callable[..., object],
    right: Callable[..., object],
    *,
    calls: int,
    count: int,
    first_only: Callable[..., object] | None = None,
    replaced: Callable[..., object] | None = None,
    inputs: Sequence[TensorSpec] = (ROWS,),
    warning: str = "",
) -> Rewriting:
    """Return a program, and the same with a tanh after each relu, which has `calls` calls and `count` tanhs.

    The `warning` explains other values to the student.
    """
    turns = [CYCLE, WrongTurn("nobody reads the new node: send relu's readers to it.", computes=program)]
    if first_only:
        turns.append(WrongTurn("only one relu got its tanh; go through all nodes.", computes=first_only))
    if replaced:
        turns.append(WrongTurn("tanh stands in place of relu; it has to stand behind it.", computes=replaced))
    return Rewriting(
        Program(f"`{name}`", lambda: program, tuple(inputs), 0, ((TensorSpec((1, 4)),),)),
        calls,
        {"torch.tanh": count},
        expected=lambda: right,
        wrong_turns=tuple(turns),
        warning=warning,
    )


ONE = inserting(
    "torch.relu(x) + 1",
    lambda x: torch.relu(x) + 1,
    lambda x: torch.tanh(torch.relu(x)) + 1,
    calls=3,
    count=1,
    replaced=lambda x: torch.tanh(x) + 1,
)
SEVERAL = [
    inserting(
        "h = torch.relu(x); h * (h + 1)",
        lambda x: (h := torch.relu(x)) * (h + 1),
        lambda x: (h := torch.tanh(torch.relu(x))) * (h + 1),
        calls=4,
        count=1,
    ),
    inserting(
        "torch.relu(x) - torch.relu(x * 2)",
        lambda x: torch.relu(x) - torch.relu(x * 2),
        lambda x: torch.tanh(torch.relu(x)) - torch.tanh(torch.relu(x * 2)),
        calls=6,
        count=2,
        first_only=lambda x: torch.tanh(torch.relu(x)) - torch.relu(x * 2),
    ),
]
OTHER_CALLS = [
    inserting(
        "F.relu6(x) + torch.relu(x)",
        lambda x: F.relu6(x) + torch.relu(x),
        lambda x: F.relu6(x) + torch.tanh(torch.relu(x)),
        calls=4,
        count=1,
        warning="`F.relu6` is another function: it gets no tanh.",
    ),
    inserting(
        "torch.relu(x) - F.relu(x * 2)",
        lambda x: torch.relu(x) - F.relu(x * 2),
        lambda x: torch.tanh(torch.relu(x)) - F.relu(x * 2),
        calls=5,
        count=1,
        warning="Only `torch.relu` is asked for; the other target is `F.relu`, whatever the name of the node is.",
    ),
]


def ready_to_run(right: Run, program: Program, expected: Callable[[], Callable[..., object]] | None = None) -> Run:
    """Return a check that `right` holds, and that the pass's module computes what the program, or `expected`, does.

    Drawn steps follow the outputs. Where the pass changes no values, it gets a module whose code is not that of its
    graph: only one that was compiled again has the right values.
    """

    def run(answer: GraphAnswer, draw: Draw) -> None:
        right(answer, draw)
        more = Continuation.drawn(draw)
        source, inputs = traced(program, draw, more), draw_inputs(program.inputs, draw)
        wanted = source
        if expected:
            wanted = replace(source, module=more.behind_graph(replace(program, build=expected).trace()))
        told = f"In the program {program.name}"
        try:
            found = answer.called(source, inputs, outdated=expected is None).outputs
            eagers, truths = (as_tuple(wanted.reference(*each)) for each in (inputs, [i.double() for i in inputs]))
            for output, truth, eager in zip(found, truths, eagers, strict=True):
                comparison.require_close(output, truth, eager, "The output", "")
        except (AnswerFailedError, CheckFailedError, ValueError) as error:
            raised = error.message if isinstance(error, AnswerFailedError) else ""
            raise CheckFailedError(
                f"{told} the graph is right, and the module that you return does not run it: "
                f"{AS_OPERATOR if UNWRITTEN in raised else COMPILE}{raised and f' It raises {raised[:200]}'}"
            ) from None

    return run


EXERCISE = Exercise(
    title="Insert a node behind another",
    kind=Kind.GRAPH,
    entry_point="insert_tanh",
    points=6,
    masked=("course_lib.fusion", "course_lib.schedule", "course_lib.backends"),
    wall_s=30,
    hints=(
        "Look at who reads relu once the new node is there: print `relu.users` before you redirect anybody.",
        "Insert with `graph.inserting_after(node)`, then redirect all readers but one. "
        "`replace_all_uses_with` takes a function that says which readers to redirect.",
        "The function is the keyword `delete_user_cb`: it gets a reader and says True if it is to be redirected.",
    ),
    checks=(
        Check("one node more, and it reads relu", "one reader", 1, rewritten([ONE], continued=True)),
        Check(
            "the module runs the new graph",
            "ready to run",
            0.5,
            ready_to_run(rewritten([ONE]), ONE.program, ONE.expected),
        ),
        Check("several readers, several relus", "several", 1.5, rewritten(SEVERAL, continued=True)),
        Check("other calls stay", "look-alikes", 0.5, rewritten(OTHER_CALLS, together=True, continued=True)),
    ),
)
