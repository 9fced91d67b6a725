"""A joint graph is cut where one says: gradients stay, and what is saved costs what its rows say."""

import importlib

import pytest
import torch
from torch import fx
from torch.nn import functional as F

from course_lib.errors import GraphError
from course_lib.graph.joint_graph import cut_at, joint_rows, saved_bytes

PARTITIONERS = "torch._functorch.partitioners"


def block(x, w, v, bias):
    h = F.gelu(x @ w + bias) * torch.sigmoid(x @ v)
    return F.layer_norm(F.dropout(h, 0.3) + x, (16,)).exp()


def leaves():
    torch.manual_seed(3)
    return [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((8, 16), (16, 16), (16, 16), (16,))]


def trained(partition):
    """The gradients, and the forward graph that the partition made."""
    from torch._decomp import get_decompositions
    from torch._functorch.aot_autograd import aot_function, make_boxed_func

    found = []

    def keep(graph_module, _):
        found.append(graph_module)
        return make_boxed_func(graph_module.forward)

    aten, inputs = torch.ops.aten, leaves()
    table = get_decompositions([aten.native_dropout, aten.gelu, aten.gelu_backward, aten.native_layer_norm])
    run = aot_function(block, keep, keep, partition_fn=partition, decompositions=table)
    torch.manual_seed(5)
    run(*inputs).sum().backward()
    return [i.grad for i in inputs], found[0]


def read_by_backward(rows):
    read = {a for r in rows if r["part"] == "backward" for a in r["args"]}
    return [r["name"] for r in rows if r["part"] == "forward" and r["tag"] != "input" and r["name"] in read]


def without_random_values(rows):
    """What backward reads, less the masks: they and nothing else would be drawn again."""
    random = {r["name"] for r in rows if r["tag"] == "random"}
    return [r["name"] for r in rows if r["name"] in read_by_backward(rows) and not random & set(r["args"])]


def heavy(rows):
    """Products, reductions and masks; everything pointwise is computed again."""
    random = {r["name"] for r in rows if r["tag"] == "random"}
    kinds = ("product", "reduction", "random")
    masks = [r["name"] for r in rows if random & set(r["args"]) and r["part"] == "forward"]
    return [r["name"] for r in rows if r["part"] == "forward" and r["tag"] in kinds] + masks


def test_what_is_private_of_pytorch_is_where_it_was():
    found = hasattr(importlib.import_module(PARTITIONERS), "_extract_fwd_bwd_modules")
    assert found, (
        f"torch {torch.__version__} has no {PARTITIONERS}._extract_fwd_bwd_modules: joint.py needs another way"
    )


@pytest.mark.parametrize("choose", [read_by_backward, heavy, lambda rows: []], ids=["read", "heavy", "nothing"])
def test_gradients_are_those_of_the_default_cut_where_masks_are_kept(choose):
    from functorch.compile import default_partition

    right, _ = trained(default_partition)
    found, _ = trained(cut_at(choose))
    same = [torch.allclose(a, b) for a, b in zip(found, right, strict=True)]
    assert same == [choose in (read_by_backward, heavy)] * 4


def test_a_mask_that_is_not_kept_is_drawn_again_and_gradients_differ():
    right, _ = trained(cut_at(read_by_backward))
    found, _ = trained(cut_at(without_random_values))
    assert not any(torch.allclose(a, b) for a, b in zip(found, right, strict=True))


@pytest.mark.parametrize("choose", [read_by_backward, heavy], ids=["read", "heavy"])
def test_saved_bytes_are_those_of_the_rows_and_a_view_counts_as_what_it_shows_once(choose):
    by_name = {}

    def noted(rows):
        by_name.update({r["name"]: r for r in rows})
        return choose(rows)

    _, forward = trained(cut_at(noted))
    saved = [by_name[node.name] for node in forward.graph.find_nodes(op="output")[0].args[0][1:]]
    owners = {r["args"][0] if r["tag"] == "view" else r["name"] for r in saved if r["tag"] != "input"}
    assert any(r["tag"] == "view" for r in saved) is (choose is read_by_backward)
    assert saved_bytes(forward) == sum(by_name[name]["bytes"] for name in owners) > 0


def test_rows_say_what_each_value_is():
    rows = []

    def note(found):
        rows.extend(found)
        return read_by_backward(found)

    trained(cut_at(note))
    by_name = {r["name"]: r for r in rows}
    given = {"op": "input", "args": [], "part": "forward", "tag": "input", "bytes": 8 * 16 * 8, "flops": 0}
    assert by_name["primals_1"] == {"name": "primals_1", **given}
    assert (by_name["tangents_1"]["part"], by_name["tangents_1"]["tag"]) == ("backward", "input")
    assert by_name["mm"]["tag"] == "product"
    assert by_name["mm"]["flops"] == 2 * 8 * 16 * 16
    assert [by_name["sigmoid"][k] for k in ("tag", "flops", "bytes")] == ["pointwise", 8 * 16, 8 * 16 * 8]
    assert {r["tag"] for r in rows if r["op"] in ("rand_like", "bernoulli")} == {"random"}
    assert {r["tag"] for r in rows if r["op"] in ("t", "detach")} == {"view"}
    assert by_name["getitem"]["op"] == "var_mean"
    assert by_name["getitem"]["tag"] == "reduction"


def test_a_value_that_is_not_there_and_a_graph_of_another_kind_are_refused():
    with pytest.raises(GraphError, match="no value 'nobody'"):
        trained(cut_at(lambda rows: ["nobody"]))
    with pytest.raises(GraphError, match="AOTAutograd"):
        joint_rows(fx.symbolic_trace(lambda x: x.relu()))
