"""What people likely get wrong about exported programs and their differences is named."""

from itertools import chain

import pytest
import torch
from torch import fx

from autograder.exercises.programs import packages
from autograder.exercises.programs.graph_rows import graph_of
from autograder.exercises.shipping.diff_graphs import program
from autograder.exercises.shipping.guard_package import promise
from autograder.host.draw import Draw
from tests.autograder.exercises.judged import judged, reference, said
from tests.drawn import third

# exercise, words of a message, change of the reference
NAMED = [
    ("14_diff_graphs", "those of inputs, say nothing", ("inputs.index(node)", "node.name")),
    ("14_diff_graphs", "(matmul.default)", ("if not missing.intersection(node.all_input_nodes)", "")),
    ("14_export_open", "is fixed at 10", ("{0: batch, 1: length}", "{0: batch}")),
    ("14_export_open", "specialized it to be a constant (10)", ("table[:x.shape[1]]", "table[:int(x.shape[1])]")),
    ("14_export_open", "a batch above 64 is refused", ("Dim('batch', max=64)", "Dim('batch')")),
    (
        "14_export_open",
        "divide by the number of kept tokens",
        ("(x * kept).sum(1) / kept.sum(1)", "(x * kept).mean(1)"),
    ),
    ("14_guard_package", "is the largest. An open size has a range", ("(found.lower, found.upper)", "(0, 9999)")),
    (
        "14_guard_package",
        "the guard raised TypeError; expected ValueError",
        ("ValueError(f'{name}", "TypeError(f'{name}"),
    ),
    ("14_guard_package", "returned something else than the package", ("return package(*inputs)", "package(*inputs)")),
    ("14_guard_package", "and no other input", ("{name} does not fit: ", "one of {names} does not fit: ")),
    ("14_repair_exports", "data-dependent expression", ("torch.arange(x.shape[0]) < count", "x[: int(count)] > 0")),
    ("14_repair_exports", "It forgot the earlier calls", ("self.total += x.sum(0)", "return x - x.mean(0)")),
    ("14_repair_exports", "counted from 0", ("< count", "<= count")),
    ("14_repair_exports", "return what torch.export.export gives", ("export(module, given)", "module")),
]
TRIED = third(NAMED, name="mistakes in shipping")  # the others in other runs


@pytest.mark.parametrize("mistake", TRIED, ids=[f"{n[0]}: {n[1]}" for n in TRIED])
def test_a_likely_mistake_is_named(mistake):
    exercise_id, words, *changes = mistake
    assert words in said(exercise_id, *changes, hidden=False)


def test_automatic_sizes_that_the_module_fixes_are_seen_though_nothing_raises():
    changes = [("Dim('batch', max=64)", "Dim.AUTO"), ("Dim('length', min=2, max=128)", "Dim.AUTO")]
    answer = reference("14_export_open", *changes, ("table[:x.shape[1]]", "table[:int(x.shape[1])]"))
    record = judged("14_export_open", answer, hidden=False, only=["batch and length are open"])
    assert "dimension 1 of the input `x` is fixed at 10" in record.checks[0].message


def test_an_operator_of_the_course_is_one_node_or_earns_nothing():
    answer = reference("14_repair_exports", ("bias_gelu(x, bias)", "F.gelu(x + bias)"))
    record = judged("14_repair_exports", answer, only=["`smooth`", "`smooth` is one operator"])
    assert [check.points for check in record.checks] == [2.0, 0.0]
    assert "calls torch.ops.aten.add, torch.ops.aten.gelu" in record.checks[1].message


def test_the_state_must_be_kept_and_not_only_computed():
    kept = ("self.total += x.sum(0)", "total = self.total + x.sum(0)")
    answer = reference("14_repair_exports", kept, ("self.total / self.rows", "total / self.rows"))
    record = judged("14_repair_exports", answer, hidden=False, only=["`running` in two calls"])
    assert record.points == 0
    assert "in call 2" in record.checks[0].message


def test_a_promise_becomes_a_program_with_these_sizes_and_ranges():
    promised = promise(Draw(5, "promise"), lengths=True)
    program = packages.promised(**promised.told())
    values = {node.name: node.meta["val"] for node in program.graph.find_nodes(op="placeholder")}
    hidden, residual, mask = (values[name] for name in packages.NAMES)
    assert program.graph_signature.user_inputs == packages.NAMES
    shapes = [[str(size) for size in each.shape] for each in (hidden, residual, mask)]
    assert list(map(len, shapes)) == list(map(len, promised.dims))
    dims = dict(zip(chain(*shapes), chain(*promised.dims), strict=True))  # each symbol is one open size
    assert [[dims[size] for size in each] for each in shapes] == promised.dims
    assert [str(each.dtype).removeprefix("torch.") for each in (hidden, residual, mask)] == promised.dtypes
    found = {(int(each.lower), int(each.upper)) for each in program.range_constraints.values()}
    assert found == set(promised.ranges.values())


def test_rows_become_a_graph_with_these_names_and_constants():
    rows = program(Draw(3, "rows"))
    graph_module = graph_of(rows)
    graph_module.graph.lint()
    assert [node.name for node in graph_module.graph.nodes] == [row["name"] for row in rows]
    assert isinstance(graph_module, fx.GraphModule)
    assert graph_module.table.tolist() == rows[2]["args"][0]
    assert graph_module.table.dtype == torch.float32
