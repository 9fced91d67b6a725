"""The graphs that Inductor's hooks see: private parts of PyTorch that a new version may move."""

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.inductor_passes import HOOKS, calls_of, graphs_at_hooks

ADDMM = torch.ops.aten.addmm.default


def _block(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.relu(x @ w + b)


def _has_addmm(x: Tensor) -> list[bool]:
    seen = graphs_at_hooks(_block, [x, torch.zeros(8, 8), torch.zeros(8)])
    return [bool(made.graph.find_nodes(op="call_function", target=ADDMM)) for made in seen.values()]


def test_every_hook_is_reached_in_order_and_the_first_sees_functions_of_torch() -> None:
    seen = graphs_at_hooks(lambda x: F.gelu(x), [torch.zeros(3)])
    assert tuple(seen) == HOOKS
    assert [node.target for node in seen[HOOKS[0]].graph.nodes if node.op == "call_function"] == [F.gelu]
    assert "erf.default" in calls_of(seen[HOOKS[1]].graph)


def test_product_and_sum_are_folded_between_the_last_hooks_for_matrices_only() -> None:
    assert _has_addmm(torch.zeros(4, 8)) == [False, False, False, False, True]
    assert _has_addmm(torch.zeros(2, 4, 8)) == [False] * 5


def test_the_fold_of_this_version_drops_alpha() -> None:
    x, w, b = torch.randn(4, 8), torch.randn(8, 8), torch.randn(8)
    last = graphs_at_hooks(lambda x, w, b: torch.add(x @ w, b, alpha=2), [x, w, b])[HOOKS[-1]]
    (folded,) = last.graph.find_nodes(op="call_function", target=ADDMM)
    assert folded.kwargs == {}, "notebook 11 shows a mistake of PyTorch that is mended: change its section 4"
