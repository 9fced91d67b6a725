"""Checks of passes that tidy: what is counted, what is compared, and how often."""

from dataclasses import replace

import pytest
import torch
from torch import fx, nn

from autograder.host.artifacts import Artifact
from autograder.host.checks.dropout_checks import Dropping, drops
from autograder.host.checks.rewrite_checks import Rewriting, WrongTurn, rewritten
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.traced import Program, TensorSpec
from autograder.worker.kinds.graph import graph_answer
from course_lib.graph import to_data
from tests.autograder.host.in_process import InProcess

ROWS = TensorSpec((3, 4))


def verdict(check, function):
    """What a check says of a pass; empty if it passes."""
    try:
        check(GraphAnswer(InProcess(graph_answer(function)), InProcess()), Draw(1))
    except CheckFailedError as error:
        return f"{error} [{error.share:g}]"
    return ""


def unchanged(gm):
    return gm


def with_three_more(gm):
    (output,) = gm.graph.find_nodes(op="output")
    with gm.graph.inserting_before(output):
        last = output.args[0]
        for _ in range(3):
            last = gm.graph.call_function(torch.clone, (last,))
        output.args = (last,)
    gm.recompile()
    return gm


def without_dead(gm):
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm


def dead(x):
    torch.exp(x)
    return x + 1


def two_dead(x):
    torch.exp(x) * torch.sin(x)
    return x + 1


def of(function, calls, **options):
    return Rewriting(Program("`f`", lambda: function, (ROWS,), 0, ((TensorSpec((5, 4)),),)), calls, **options)


def test_calls_that_were_drawn_behind_a_program_are_not_counted_in_the_message():
    case = replace(of(dead, 4), behind=3)

    assert "makes 2 calls; 1 are right, not counting the 3 drawn behind its outputs." in verdict(
        rewritten([case]), with_three_more
    )


def test_calls_that_are_left_are_counted_and_points_are_shared():
    both = rewritten([of(dead, 1), of(two_dead, 1)])

    assert verdict(both, without_dead) == ""
    assert "makes 2 calls; 1 are right. (0 of 2 programs are right.) [0]" in verdict(both, unchanged)
    assert "[0.5]" in verdict(rewritten([of(dead, 2), of(two_dead, 1)]), without_dead)


def test_fewer_calls_may_be_right_too():
    assert verdict(rewritten([of(dead, 2, at_least=1)]), without_dead) == ""
    assert verdict(rewritten([of(dead, 2, at_least=1)]), unchanged) == ""
    assert "makes 4 calls" in verdict(rewritten([of(two_dead, 2, at_least=1)]), unchanged)


def test_targets_are_counted_by_name():
    assert verdict(rewritten([of(dead, 1, counts={"operator.add": 1})]), without_dead) == ""
    assert "calls operator.add once; expected twice" in verdict(
        rewritten([of(dead, 1, counts={"operator.add": 2})]), without_dead
    )


def bakes_rows(gm):
    """A graph that is right for three rows only."""
    for node in gm.graph.nodes:
        if node.target is torch.exp:
            node.target, node.args = torch.zeros, ((3, 4),)
    gm.recompile()
    return gm


def test_the_result_is_held_against_the_program_at_other_sizes_or_against_what_is_expected():
    def program(x):
        return x + torch.exp(x) * 0

    assert "does not run" in verdict(rewritten([of(program, 3)]), bakes_rows)
    assert "off by" in verdict(rewritten([of(dead, 2, expected=lambda: lambda x: x + 2)]), unchanged)
    assert verdict(rewritten([of(dead, 2, expected=lambda: lambda x: 1 + x)]), unchanged) == ""


def test_a_wrong_turn_is_named_by_what_it_computes_calls_or_is_refused_for():
    computes = WrongTurn("It was subtracted.", computes=lambda x: x - 1)
    calls = WrongTurn("Nothing was erased.", calls=2)

    def subtracts(gm):
        next(n for n in gm.graph.nodes if n.name == "add").target = torch.sub
        gm.recompile()
        return gm

    def selfish(gm):
        add = next(n for n in gm.graph.nodes if n.name == "add")
        add.args = (add, 1)
        return gm

    assert "It was subtracted." in verdict(rewritten([of(dead, 1, wrong_turns=(calls, computes))]), subtracts)
    assert "Nothing was erased." in verdict(rewritten([of(dead, 1, wrong_turns=(calls, computes))]), unchanged)
    turn = WrongTurn("It reads itself.", refused="no earlier node has that name")
    assert "It reads itself." in verdict(rewritten([of(dead, 1, wrong_turns=(turn,))]), selfish)


class Grows(nn.Module):
    """Adds one to a number of its own; right once only if the number is kept."""

    def __init__(self):
        super().__init__()
        self.register_buffer("number", torch.zeros(4))

    def forward(self, x):
        total = self.number * 1
        total.add_(1)
        return x + total


def keeps_the_total(gm):
    product = next(n for n in gm.graph.nodes if n.name == "mul")
    gm.register_buffer("total", torch.zeros(4))
    with gm.graph.inserting_before(product):
        product.replace_all_uses_with(gm.graph.get_attr("total"))
    gm.graph.erase_node(product)
    gm.recompile()
    return gm


def test_a_result_that_changes_from_call_to_call_is_wrong():
    program = Program("`Grows`", Grows, (ROWS,), 0, buffers=True)

    assert verdict(rewritten([Rewriting(program, 3)]), unchanged) == ""
    assert "called a second time" in verdict(rewritten([Rewriting(program, 2)]), keeps_the_total)


def test_tensors_that_are_left_are_counted():
    program = Program("`Linear`", lambda: nn.Sequential(nn.Linear(4, 4)), (ROWS,), 0)

    assert verdict(rewritten([Rewriting(program, 1, tensors=2)]), unchanged) == ""
    assert "holds 2 parameters and buffers; 1 are right" in verdict(
        rewritten([Rewriting(program, 1, tensors=1)]), unchanged
    )


def dropped(x):
    return nn.functional.dropout(x, 0.25, True)


DROPPING = Dropping(
    Program("`dropout`", lambda: dropped, (TensorSpec((4, 8)),), 0, training=True),
    0.25,
    lambda draw: (torch.cat([torch.zeros(512, 1), draw.normal(512, 7) + 9], 1),),
    lambda module, inputs, factors: inputs[0] * factors,
)
OPERATOR = "torch.nn.functional.dropout"


def changed(**kwargs):
    def apply(gm):
        node = next(n for n in gm.graph.nodes if n.target is nn.functional.dropout)
        node.kwargs = {**node.kwargs, **kwargs}
        gm.recompile()
        return gm

    return apply


def doubled(gm):
    node = next(n for n in gm.graph.nodes if n.target is nn.functional.dropout)
    with gm.graph.inserting_after(node):
        twice = gm.graph.call_function(torch.mul, (node, 2))
    node.replace_all_uses_with(twice, delete_user_cb=lambda user: user is not twice)
    gm.recompile()
    return gm


def with_another_mask_backward(gm):
    """Values with one mask, gradients with another."""
    node = next(n for n in gm.graph.nodes if n.target is nn.functional.dropout)
    x = node.args[0]
    with gm.graph.inserting_after(node):
        kept = gm.graph.call_method("detach", (node,))
    with gm.graph.inserting_after(kept):
        total = gm.graph.call_function(torch.add, (kept, x))
    with gm.graph.inserting_after(total):
        constant = gm.graph.call_method("detach", (x,))
    with gm.graph.inserting_after(constant):
        result = gm.graph.call_function(torch.sub, (total, constant))
    gm.graph.output_node().args = (result,)
    gm.recompile()
    return gm


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (unchanged, ""),
        (changed(training=False), "Nothing falls out"),
        (changed(p=0.5), "Hand on the program's own p"),
        (doubled, "off by"),
        (with_another_mask_backward, "The gradient by an input"),
        (without_dead, ""),
    ],
)
def test_dropping_is_held_to_its_rate_its_scale_and_its_own_mask(function, words):
    said = verdict(drops([DROPPING], OPERATOR, gradients=True), function)

    assert words in said
    assert bool(words) == bool(said)


def test_a_graph_is_rebuilt_once_for_runs_in_a_row_and_again_when_its_tensors_changed():
    graph, tensors = to_data(fx.symbolic_trace(nn.Sequential(nn.Linear(1, 1, bias=False))))
    clean, artifact, given = InProcess(), Artifact(graph, tensors), torch.ones(2, 1)
    answer, loads = GraphAnswer(InProcess(), clean), []
    for slope in (3.0, 3.0, 4.0):
        for tensor in tensors.values():
            if not torch.all(tensor == slope):
                tensor.fill_(slope)
        assert torch.equal(answer.run(artifact, (given,)).outputs[0], slope * given)
        loads.append(clean.load)
    assert loads[0] is loads[1]
    assert loads[1] is not loads[2]
