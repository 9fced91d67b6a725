"""The residual network has BatchNorm where folding finds it, and its shortcut where sizes change."""

import torch
from torch import nn

from course_lib.capture import capture, compare_modes
from course_lib.graph import count_operators
from course_lib.models.workloads import ResidualBlock, ResidualNetwork


def test_a_block_is_what_its_formula_says():
    block, x = ResidualBlock(4, 6, stride=2).double().eval(), torch.randn(2, 4, 8, 8, dtype=torch.float64)
    for norm in (block.first.norm, block.second.norm, block.shortcut.norm):
        nn.init.normal_(norm.running_mean)
        nn.init.uniform_(norm.running_var, 0.5, 2)

    def convolved(part: nn.Module, x: torch.Tensor, stride: int, padding: int) -> torch.Tensor:
        norm = part.norm
        y = torch.conv2d(x, part.convolution.weight, None, stride, padding)
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        return (y - norm.running_mean[:, None, None]) * scale[:, None, None] + norm.bias[:, None, None]

    inner = convolved(block.second, convolved(block.first, x, 2, 1).relu(), 1, 1)
    torch.testing.assert_close(block(x), (inner + convolved(block.shortcut, x, 2, 0)).relu())
    assert block(x).shape == (2, 6, 4, 4)
    assert isinstance(ResidualBlock(4, 4).shortcut, nn.Identity)


def test_the_graph_shows_a_batch_norm_after_each_convolution():
    model = ResidualNetwork().eval()
    graph = capture(model).graph_module
    counts = count_operators(graph)
    assert counts["torch.nn.Conv2d"] == counts["torch.nn.BatchNorm2d"] == 6
    images = torch.randn(2, 3, 9, 9)
    assert torch.equal(graph(images), model(images))
    assert model(images).shape == (2, 10)


def test_training_moves_the_statistics_and_evaluation_does_not():
    model, images = ResidualNetwork(), torch.randn(4, 3, 8, 8)
    before = model.stem.norm.running_mean.clone()
    model.eval()(images)
    assert torch.equal(model.stem.norm.running_mean, before)
    model.train()(images)
    assert not torch.equal(model.stem.norm.running_mean, before)


def test_every_mode_captures_the_network_in_evaluation():
    comparison = compare_modes(ResidualNetwork().eval(), (torch.randn(2, 3, 8, 8),), [(torch.randn(2, 3, 8, 8),)])
    assert set(comparison.verdicts.values()) == {"captured"}, comparison
