"""Tables, drawings, counts and shapes say what is in the graph."""

import html
import re
import xml.etree.ElementTree as ElementTree
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.capture import capture
from course_lib.errors import GraphError
from course_lib.graph import cost, count_operators, draw, propagate_shapes, saved_for_backward, table
from course_lib.graph.shapes import describe
from course_lib.kernels import bias_gelu


class Program(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.bias = nn.Parameter(torch.zeros(4))
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> tuple[object, ...]:
        h = F.gelu(self.linear(x) + self.bias)
        rows, columns = h.shape[0], h.chunk(2, dim=1)
        return bias_gelu(self.norm(h).add(h), self.bias), rows, columns, None


def _graph() -> fx.GraphModule:
    return capture(Program()).graph_module


def _node(gm: fx.GraphModule, name: str) -> fx.Node:
    return next(node for node in gm.graph.nodes if node.name == name)


def test_operators_are_counted_by_their_public_names() -> None:
    assert count_operators(_graph()) == {
        "Tensor.add": 1,
        "Tensor.chunk": 1,
        "builtins.getattr": 1,
        "operator.add": 1,
        "operator.getitem": 1,
        "torch.nn.BatchNorm1d": 1,
        "torch.nn.Linear": 1,
        "torch.nn.functional.gelu": 1,
        "torch.ops.course_lib.bias_gelu.default": 1,
    }


def test_own_functions_and_modules_are_counted_by_their_own_names() -> None:
    class Own(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.expm1(torch.linalg.norm(x))

    gm = capture(nn.Sequential(Own()), leaf_modules=[Own]).graph_module
    assert list(count_operators(gm)) == [Own.__qualname__]
    assert all("norm" in name or "expm1" in name for name in count_operators(capture(Own()).graph_module))


def test_shapes_reach_every_kind_of_result() -> None:
    gm = _graph()
    assert propagate_shapes(gm, [torch.randn(5, 3)]) is gm
    assert describe(_node(gm, "linear")) == "float32[5, 4]"
    assert describe(_node(gm, "bias")) == "float32[4]"
    assert describe(_node(gm, "chunk")) == "(float32[5, 2], float32[5, 2])"
    assert describe(_node(gm, "getitem")) == "5"
    assert describe(_node(gm, "output")).endswith(", None)")
    assert _node(gm, "gelu").meta["tensor_meta"].shape == (5, 4)
    assert _node(gm, "gelu").meta["val"].dtype == torch.float32


def test_shapes_change_nothing_but_metadata() -> None:
    gm = _graph().train()
    kept = {name: tensor.clone() for name, tensor in gm.state_dict().items()}
    code, state = gm.code, torch.get_rng_state()
    propagate_shapes(gm, [torch.randn(5, 3)])
    propagate_shapes(gm, [torch.randn(7, 3)])  # other shapes replace the first ones
    assert describe(_node(gm, "linear")) == "float32[7, 4]"
    assert gm.code == code
    assert all(torch.equal(tensor, kept[name]) for name, tensor in gm.state_dict().items())
    assert type(gm.bias) is nn.Parameter
    assert not torch.equal(state, torch.get_rng_state())  # by the two randn above, and by them alone


def test_meta_inputs_stand_for_inputs_beside_the_parameters() -> None:
    gm = propagate_shapes(_graph(), [torch.empty(5, 3, device="meta")])
    assert describe(_node(gm, "bias_gelu_default")) == "float32[5, 4]"
    assert _node(gm, "linear").meta["val"].device.type == "cpu"


def test_inputs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(GraphError, match="cannot run on these example inputs"):
        propagate_shapes(_graph(), [torch.randn(5, 7)])
    with pytest.raises(GraphError, match=r"has 1 inputs \(x\), and 0 example inputs came"):
        propagate_shapes(_graph(), [])


def test_the_table_has_a_row_for_each_node_and_prints_aligned() -> None:
    gm = _graph()
    plain = table(gm)
    assert plain.columns == ("node", "op", "calls", "arguments", "users", "source")
    assert len(plain.rows) == len(gm.graph.nodes)
    full = table(propagate_shapes(gm, [torch.randn(5, 3)]))
    assert "result" in full.columns
    lines = str(full).splitlines()
    assert len(lines) == len(gm.graph.nodes) + 2
    assert "torch.nn.Linear (linear)" in str(full)
    assert "h = F.gelu(self.linear(x) + self.bias)" in str(full)
    starts = {line.index(word) for line, word in [(lines[0], "op"), (lines[2], "placeholder")]}
    assert len(starts) == 1


def test_the_table_without_source_or_shapes_leaves_those_columns_out() -> None:
    assert table(fx.symbolic_trace(lambda x: x + 1)).columns == ("node", "op", "calls", "arguments", "users")


def test_the_table_as_html_escapes_what_it_shows() -> None:
    gm = fx.symbolic_trace(lambda x: torch.einsum("<b>", x))
    markup = cast(Any, table(gm))._repr_html_()
    assert "></code>" not in markup
    assert "<b>" not in markup
    assert html.escape("'<b>'") in markup


def test_tables_and_drawings_read_the_same_wherever_they_are_shown() -> None:
    for shown in (table(_graph()), draw(_graph())):
        assert repr(shown) == str(shown)
        assert "Linear (linear)" in repr(shown)


def _wide(nodes: int) -> fx.GraphModule:
    graph = fx.Graph()
    value = graph.placeholder("x")
    for _ in range(nodes):
        value = graph.call_function(torch.relu, (value,))
    graph.output(value)
    return fx.GraphModule(nn.Module(), graph)


def test_the_picture_shows_name_kind_call_and_shape_of_each_node() -> None:
    gm = propagate_shapes(_graph(), [torch.randn(5, 3)])
    picture = draw(gm)
    words = "\n".join(ElementTree.fromstring(picture.svg).itertext())
    for node in gm.graph.nodes:
        assert node.name in words
        assert node.name in picture.text
    for part in ("Linear (linear)", "float32[5, 4]", "parameter", "function", "module", "method"):
        assert part in words
        assert part in picture.text


def test_a_branch_is_drawn_as_a_graph_and_not_as_a_parameter() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    branches = [graph.get_attr(name) for name in ("scale", "negated")]
    graph.output(graph.call_function(torch.cond, (x, *branches, (x,))))
    held = nn.Module()
    held.scale, held.negated = nn.Parameter(torch.ones(2)), fx.symbolic_trace(lambda x: -x)
    drawing = draw(fx.GraphModule(held, graph))
    assert "scale: parameter" in drawing.text
    assert "negated: graph" in drawing.text
    assert "negated · graph" in drawing.svg


def test_the_picture_stands_alone_and_says_what_it_shows() -> None:
    picture = draw(_graph())
    assert not re.search(r"(href|src)=\"http", picture.svg)
    assert picture.alt.startswith("Graph of 12 nodes with input x: Linear (linear), then add, then gelu")
    assert f'aria-label="{html.escape(picture.alt)}"' in picture.svg
    assert f'alt="{html.escape(picture.alt)}"' in cast(Any, picture)._repr_html_()


def test_sixty_nodes_stay_readable() -> None:
    root = ElementTree.fromstring(draw(_wide(60)).svg)
    sizes = {float(text.get("font-size", "0")) for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert min(sizes) >= 10
    assert float(str(root.get("width")).removesuffix("pt")) < 400


def test_labels_with_markup_or_backslashes_are_drawn_as_they_are() -> None:
    gm = fx.symbolic_trace(lambda x: x + 1)
    _node(gm, "add").meta["val"] = "<b>\\N</b>"
    words = "".join(ElementTree.fromstring(draw(gm).svg).itertext())
    assert "<b>\\N</b>" in words


def test_a_machine_without_graphviz_is_told_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GraphError, match="install the Debian package `graphviz`"):
        draw(_graph())


@pytest.mark.parametrize("view", [table, draw, count_operators, lambda gm: propagate_shapes(gm, [torch.ones(2)])])
@pytest.mark.parametrize("given", [nn.ReLU(), "a graph"])
def test_what_is_no_graph_is_named_with_the_way_to_one(view, given) -> None:
    with pytest.raises(GraphError, match=f"got a {type(given).__name__}; it expects a torch.fx.GraphModule, such as"):
        view(given)


@pytest.mark.parametrize(
    "asked",
    [
        lambda x: cost(torch.relu, x),
        lambda x: saved_for_backward(torch.relu, x),
        lambda x: propagate_shapes(_graph(), x),
    ],
)
def test_one_tensor_in_place_of_a_tuple_is_named(asked) -> None:
    with pytest.raises(GraphError, match=r"got a Tensor as inputs; .* One tensor x is given as \(x,\)"):
        asked(torch.ones(3))
