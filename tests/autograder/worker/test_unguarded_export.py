"""Where all sizes are fixed, export gives the same graph without writing guards."""

import torch
from torch._dynamo import guards
from torch.export import export

from autograder.worker.unguarded_export import without_guards


class Scaled(torch.nn.Module):
    def forward(self, x):
        return x.relu() / x.shape[-1] ** 0.5


def test_the_graph_is_the_same_and_no_guard_is_written(monkeypatch):
    written = []
    build = guards.CheckFunctionManager.__init__
    monkeypatch.setattr(guards.CheckFunctionManager, "__init__", lambda *a, **named: written.append(build(*a, **named)))
    given = (torch.ones(2, 3),)
    usual = export(Scaled(), given, strict=True)
    assert written, "torch.export wrote guards in torch 2.13; without_guards may be of no use any more"
    written.clear()
    with without_guards():
        unguarded = export(Scaled(), given, strict=True)
    assert not written
    assert str(unguarded.graph) == str(usual.graph)
