"""The difference of two graphs says what a pass did, whatever the nodes are called."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.errors import GraphError
from course_lib.fusion import fuse_bias_gelu
from course_lib.graph import node_pairs, propagate_shapes
from course_lib.graph.diff import GraphDiff, NodeChange, diff, draw_diff
from course_lib.kernels import bias_gelu


def _trace(program: Callable[..., object]) -> fx.GraphModule:
    return fx.symbolic_trace(program)


def _two_layers(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = F.gelu(F.linear(x, weight) + bias)
    return F.dropout(x, 0.1)


def _two_layers_fused(y: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        y = bias_gelu(F.linear(y, w), b)
    return F.dropout(y, 0.1)


def test_a_graph_does_not_differ_from_itself_under_other_names_and_in_another_order() -> None:
    def before(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        first = torch.exp(x)
        second = torch.sin(y)
        return first + second

    def after(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        second = torch.sin(b)
        first = torch.exp(a)
        return first + second

    difference = diff(_trace(before), _trace(after))
    assert not difference
    assert difference.kept == (("x", "a"), ("y", "b"), ("exp", "exp"), ("sin", "sin"), ("add", "add"), ("output",) * 2)


def test_a_fusion_removes_what_it_fused_adds_the_operator_and_keeps_the_rest() -> None:
    difference = diff(_trace(_two_layers), _trace(_two_layers_fused))
    assert difference.removed == ("add", "gelu", "add_1", "gelu_1")
    assert difference.added == ("bias_gelu_default", "bias_gelu_default_1")
    assert difference.in_place_of == {"bias_gelu_default": "gelu", "bias_gelu_default_1": "gelu_1"}
    assert difference.changed == ()
    kept = ("x", "y"), ("weight", "w"), ("bias", "b"), ("linear", "linear"), ("linear_1", "linear_1")
    assert difference.kept == (*kept, ("dropout", "dropout"), ("output", "output"))


def test_branches_that_changed_order_after_a_fusion_are_told_apart_by_their_users() -> None:
    def before(x: torch.Tensor, y: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        left = F.gelu(x + b).sin()
        return left - F.gelu(y + b).sin()

    def after(x: torch.Tensor, y: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        right = bias_gelu(y, b).sin()
        return bias_gelu(x, b).sin() - right

    difference = diff(_trace(before), _trace(after))
    assert ("sin", "sin_1") in difference.kept
    assert ("sin_1", "sin") in difference.kept
    assert difference.in_place_of == {"bias_gelu_default": "gelu_1", "bias_gelu_default_1": "gelu"}
    assert not difference.changed


def _many_layers(layers: int, order: tuple[str, ...], first: float) -> fx.GraphModule:
    def program(x: Any) -> Any:
        x = x + first  # so that nothing below computes the same in two programs that begin differently
        for _ in range(layers):
            for name in order:
                x = getattr(torch, name)(x)
        return cast(torch.Tensor, x)

    return _trace(program)


def test_nodes_in_the_same_order_are_found_in_long_graphs() -> None:
    before, after = _many_layers(300, ("exp", "sin", "cos"), 1), _many_layers(300, ("exp", "cos", "sin"), 2)
    difference = diff(before, after)
    assert len(difference.removed) + len(difference.added) <= 0.1 * len(before.graph.nodes)
    survivors = [(change.before, change.after) for change in difference.changed]
    assert all(old.partition("_")[0] == new.partition("_")[0] for old, new in survivors)
    far = [old for old, new in survivors if abs(_place(before, old) - _place(after, new)) > 2 * node_pairs.WINDOW]
    assert not far


def _place(gm: fx.GraphModule, name: str) -> int:
    return [node.name for node in gm.graph.nodes].index(name)


def test_work_grows_with_the_graph_and_not_with_its_square(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    equal_entries = node_pairs._equal_entries

    def counted(left: list[Any], right: list[Any]) -> Any:
        compared.append(len(left) * len(right))
        return equal_entries(left, right)

    monkeypatch.setattr(node_pairs, "_equal_entries", counted)
    work = []
    for layers in (100, 200, 400):
        compared.clear()
        diff(_many_layers(layers, ("exp", "sin", "cos"), 1), _many_layers(layers, ("exp", "cos", "sin"), 2))
        work.append(sum(compared))
    assert 0 < work[1] <= 2.5 * work[0]
    assert work[2] <= 2.2 * work[1]


def test_the_difference_that_a_pass_of_the_library_makes() -> None:
    gm = propagate_shapes(_trace(lambda x, b: F.gelu(x + b)), [torch.ones(2, 3), torch.ones(3)])
    difference = diff(gm, fuse_bias_gelu(gm).graph_module)
    assert difference.removed == ("add", "gelu")
    assert len(difference.added) == 1


BY_HAND: dict[str, tuple[Callable[..., object], Callable[..., object], tuple[int, int, int, int]]] = {
    # before, after, how many are (removed, added, changed, kept)
    "a_literal": (lambda x: F.dropout(x, 0.1).exp(), lambda x: F.dropout(x, 0.2).exp(), (0, 0, 1, 3)),
    "the_type_of_a_literal": (lambda x: x + 1, lambda x: x + 1.0, (0, 0, 1, 2)),
    "operands_swapped": (lambda x, y: x - y, lambda x, y: y - x, (0, 0, 1, 3)),
    "a_dead_node": (lambda x: (x.exp(), x.sin())[1], lambda x: x.sin(), (1, 0, 0, 3)),
    "a_common_subexpression": (lambda x: x.exp() * x.exp(), lambda x: (e := x.exp()) * e, (1, 0, 1, 3)),
    "another_spelling": (lambda x, y: (x + y).exp(), lambda x, y: torch.add(x, y).exp(), (1, 1, 0, 4)),
    "a_node_between": (lambda x: x.exp().sin(), lambda x: x.exp().cos().sin(), (0, 1, 1, 3)),
    "a_new_input": (lambda x: x.exp(), lambda x, y: x.exp(), (0, 1, 0, 3)),
    "everything": (lambda x: x.exp(), lambda x: x.sin(), (1, 1, 0, 2)),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_nodes_are_sorted_as_by_hand(case: str) -> None:
    before, after, expected = BY_HAND[case]
    difference = diff(_trace(before), _trace(after))
    parts = (difference.removed, difference.added, difference.changed, difference.kept)
    assert tuple(map(len, parts)) == expected


def test_a_change_shows_the_arguments_before_and_after() -> None:
    difference = diff(_trace(lambda x: x + 1), _trace(lambda x: x + 2))
    assert difference.changed == (NodeChange("add", "add", "x, 1", "x, 2"),)


def test_modules_and_parameters_are_told_apart_by_their_paths() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    before, after = fx.symbolic_trace(model), fx.symbolic_trace(model)
    for node in after.graph.nodes:
        if node.target == "1":
            node.replace_all_uses_with(node.args[0])
            after.graph.erase_node(node)
    assert diff(before, after).removed == ("_1",)
    assert diff(before, after).added == ()


def test_the_text_says_what_happened_to_each_node_in_order() -> None:
    before, after = _trace(lambda x, b: F.gelu(x + b).exp()), _trace(lambda y, b: bias_gelu(y, b).exp())
    assert str(diff(before, after)).splitlines() == [
        "2 removed, 1 added, 0 changed, 4 kept",
        "  y: input()  [was x]",
        "  b: input()",
        "+ bias_gelu_default: torch.ops.course_lib.bias_gelu.default(y, b)  [in place of gelu]",
        "- add: operator.add(x, b)",
        "- gelu: torch.nn.functional.gelu(add)",
        "  exp: Tensor.exp(bias_gelu_default)",
        "  output: output(exp)",
    ]


def test_html_and_picture_say_the_same_as_the_text() -> None:
    difference = diff(_trace(_two_layers), _trace(_two_layers_fused))
    markup = cast(Any, difference)._repr_html_()
    picture = draw_diff(difference)
    words = "\n".join(ElementTree.fromstring(picture.svg).itertext())
    assert picture.text == str(difference)
    assert (words.count("REMOVED"), words.count("ADDED"), words.count("CHANGED")) == (4, 2, 0)
    for name in (*difference.removed, *difference.added):
        assert name in words
        assert name in markup
        assert name in str(difference)
    assert "4 nodes removed, 2 added, 0 changed, 7 kept" in picture.alt


def test_html_escapes_what_it_shows() -> None:
    difference = diff(_trace(lambda x: x), _trace(lambda x: torch.einsum("<b>", x)))
    assert "<b>" not in cast(Any, difference)._repr_html_()


def test_the_same_name_before_and_after_is_drawn_as_two_nodes() -> None:
    before, after = _trace(lambda x: x.exp()), _trace(lambda x: torch.exp(x))
    assert [node.name for node in before.graph.nodes] == [node.name for node in after.graph.nodes]
    words = "\n".join(ElementTree.fromstring(draw_diff(diff(before, after)).svg).itertext())
    assert words.count("exp · ") == 2


def test_comparing_changes_neither_graph() -> None:
    before, after = _trace(_two_layers), _trace(_two_layers_fused)
    codes = before.code, after.code
    diff(before, after)
    assert (before.code, after.code) == codes


def test_something_else_than_a_graph_module_is_refused() -> None:
    with pytest.raises(GraphError, match=r"diff\(\) got a Linear"):
        diff(cast(fx.GraphModule, nn.Linear(2, 2)), _trace(lambda x: x))


def test_a_difference_without_removed_added_or_changed_nodes_is_false() -> None:
    gm = _trace(lambda x: x)
    difference = diff(gm, gm)
    assert isinstance(difference, GraphDiff)
    assert not difference
