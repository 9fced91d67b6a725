"""What Inductor's scheduler is read to have done is what it did: loops, kernels, graphs, and refusals."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.nn import functional as F

from course_lib.errors import GraphError
from course_lib.graph import scheduled

X = torch.linspace(-1, 1, 64 * 32).reshape(64, 32)


def edges(found):
    """Which loop reads what which other loop wrote."""
    wrote = {loop.writes: loop.name for loop in found.loops}
    return [(wrote[name], loop.name) for loop in found.loops for name, _ in loop.reads if name in wrote]


def turned(x):
    y = x.exp()
    return y, y.T.contiguous() + 1


def fused(x):
    y = x.exp()
    return y, y.T + 1


def printed(x):
    y = x.exp()
    print(tuple(y.shape))
    return y.sum(-1)


def ranked(x):
    y = x.exp().sort(-1).values
    return y[:, -1] - y[:, 0]


def overwritten(x, k):
    x[:, -1] = k
    return x.tanh()


def joined(x):
    return torch.cat([x[:, 1:].exp(), x[:, :1]], 1), F.relu(x).mean()


PROGRAMS = [
    (turned, 2, [("op0", "op1")]),
    (fused, 1, [("op0", "op1")]),
    (printed, 2, [("op0", "g1.op0")]),
    (ranked, 3, [("op0", "op1"), ("op1", "op4"), ("op1", "op4")]),
    (overwritten, 2, [("op0", "op1")]),
    (joined, 4, [("op3", "op4")]),
]


@pytest.mark.parametrize(("program", "kernels", "wanted"), PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_kernels_and_edges_are_the_schedulers(program, kernels, wanted):
    inputs = (X.clone(), X[:, 0].clone()) if program is overwritten else (X.clone(),)
    found = scheduled(program, inputs)
    assert (found.kernels, edges(found)) == (kernels, wanted), f"torch {torch.__version__}\n{found}"


def test_sizes_places_and_memory_are_told():
    first, second = scheduled(turned, (X,)).loops
    assert (first.over, second.over, second.reads) == ((2048,), (32, 64), (("buf0", "c0 + 32*c1"),))
    assert scheduled(printed, (X,)).loops[1].reducing == (32,)
    assert scheduled(overwritten, (X.clone(), X[:, 0].clone())).loops[0].into == "arg0_1"
    assert [loop.library for loop in scheduled(ranked, (X,)).loops] == [False, True, False]


def test_refusals_are_the_schedulers_own_sentences():
    assert scheduled(turned, (X,)).refusals == ("cannot fuse op0 with op1: no shared data",)
    assert scheduled(fused, (X,)).refusals == ()


def test_the_table_has_a_line_a_loop_and_the_data_is_plain():
    found = scheduled(turned, (X,))
    assert str(found).splitlines()[2] == "1       op1   32 x 64            buf0[c0 + 32*c1]  buf1"
    assert found.data()[0] == {
        "kernel": 0,
        "graph": 0,
        "name": "op0",
        "library": False,
        "over": [2048],
        "reducing": [],
        "reads": [["arg0_1", "c0"]],
        "writes": "buf0",
        "into": "",
    }


def test_options_of_inductor_are_obeyed_and_the_cost_comes_beside():
    assert scheduled(fused, (X,), config={"max_fusion_size": 1}).kernels == 2
    assert scheduled(fused, (X,)).cost.bytes_moved == 3 * X.numel() * X.element_size()


def test_a_program_that_fails_at_a_level_of_forward_mode_leaves_none():
    def fails(x):
        forward_ad.enter_dual_level()
        raise ValueError("in the middle")

    try:
        with pytest.raises(GraphError, match="in the middle"):
            scheduled(fails, (X,))
        assert forward_ad._current_level < 0
    finally:
        while forward_ad._current_level >= 0:
            forward_ad.exit_dual_level()
