"""Each mistake shows on some program, and without it the same pass is right there."""

import copy

import pytest
import torch
from torch import fx, nn

from course_lib.errors import FusionError
from course_lib.fusion.mistaken import drop_dead_code, fold_factor, share_equal


def writes(x):
    h = x * 1
    h.neg_()
    return h


def written_between(x):
    before = torch.exp(x)
    x.add_(1)
    return before - torch.exp(x)


def written_through_a_view(x):
    first, second = torch.exp(x), torch.exp(x)
    second.view(-1).mul_(2)
    return first - second


def written_in_one_row(x):
    first, second = torch.exp(x), torch.exp(x)
    second[0].add_(1)
    return first - second


class Tied(nn.Module):
    """Two Linears with one weight."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.first(x) * 3 - self.second(x + 1)


class Scaled(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.linear, self.way = nn.Linear(3, 3), way

    def forward(self, x):
        h = self.linear(x)
        if self.way == "again":
            return self.linear(x + 1) + h * 3
        return h * 3 if self.way == "once" else h - 3 * h


MISTAKES = [
    (drop_dead_code, {"overlooks": "neg_"}, writes),
    (share_equal, {"overlooks": "keywords"}, lambda x: torch.sum(x, dim=0) - torch.sum(x, dim=1)),
    (share_equal, {"overlooks": "numbers"}, lambda x: x * 2 - x * 3),
    (share_equal, {"overlooks": "order"}, lambda x: (x - x.sum()) * (x.sum() - x)),
    (share_equal, {"overlooks": "order"}, lambda x: (x - 1) * (1 - x)),
    (share_equal, {"overlooks": "writes"}, written_between),
    (share_equal, {"overlooks": "writes"}, written_through_a_view),
    (share_equal, {"overlooks": "writes"}, written_in_one_row),
    (fold_factor, {"forgets": "bias"}, Scaled("once")),
    (fold_factor, {"forgets": "other calls"}, Tied()),
    (fold_factor, {"forgets": "other calls"}, Scaled("again")),
    (fold_factor, {"forgets": "other readers"}, Scaled("read")),
]


def agrees(program, pass_, options):
    gm = fx.symbolic_trace(program)
    before, x = gm.code, torch.randn(3, 3)
    changed = pass_(gm, **options)
    assert gm.code == before, "the graph that was given stays"
    return torch.allclose(changed(x.clone()), copy.deepcopy(gm)(x.clone()), atol=1e-5)


@pytest.mark.parametrize(("pass_", "options", "program"), MISTAKES, ids=[str(m[1]) for m in MISTAKES])
def test_a_mistake_shows_and_without_it_the_pass_is_right(pass_, options, program):
    assert agrees(program, pass_, {})
    assert not agrees(program, pass_, options)


def test_without_mistakes_the_passes_do_something():
    dead = drop_dead_code(fx.symbolic_trace(lambda x: (x.exp(), x + 1)[1]))
    shared = share_equal(fx.symbolic_trace(lambda x: x.exp() * x.exp()))
    folded = fold_factor(fx.symbolic_trace(Scaled("once")))

    assert [n.name for n in dead.graph.nodes] == ["x", "add", "output"]
    assert [n.name for n in shared.graph.nodes] == ["x", "exp", "mul", "output"]
    assert [n.name for n in folded.graph.nodes] == ["x", "linear", "output"]


def test_only_factors_above_the_bound_are_folded():
    gm = fx.symbolic_trace(Scaled("once"))

    assert len(fold_factor(gm, above=3).graph.nodes) == len(gm.graph.nodes)
    assert len(fold_factor(gm, above=2).graph.nodes) == len(gm.graph.nodes) - 1


def test_a_mistake_that_does_not_exist_is_refused():
    gm = fx.symbolic_trace(writes)
    with pytest.raises(FusionError, match="keywords, numbers, order, writes"):
        share_equal(gm, overlooks="everything")
    with pytest.raises(FusionError, match="other readers"):
        fold_factor(gm, forgets="weight")
