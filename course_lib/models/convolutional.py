"""Define a small residual network, whose BatchNorm can be folded into its convolutions.

Source: He et al., Deep Residual Learning for Image Recognition (2015), with two blocks.
"""

import torch
import torch.nn.functional as F
from torch import nn


class ConvolutionBatchNorm(nn.Module):
    """Apply a 3 × 3 convolution without bias, then BatchNorm, which has a bias."""

    def __init__(self, in_channels: int, out_channels: int, *, stride: int = 1, kernel_size: int = 3) -> None:
        super().__init__()
        padding = kernel_size // 2
        self.convolution = nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, bias=False)
        self.norm = nn.BatchNorm2d(out_channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, out channels, height / stride, width / stride) for (batch, in channels, height, width)."""
        return self.norm(self.convolution(x))


class ResidualBlock(nn.Module):
    """Add two convolutions to a shortcut, which is a 1 × 1 convolution where the sizes change."""

    def __init__(self, in_channels: int, out_channels: int, *, stride: int = 1) -> None:
        super().__init__()
        self.first = ConvolutionBatchNorm(in_channels, out_channels, stride=stride)
        self.second = ConvolutionBatchNorm(out_channels, out_channels)
        changes = stride != 1 or in_channels != out_channels
        projection = ConvolutionBatchNorm(in_channels, out_channels, stride=stride, kernel_size=1)
        self.shortcut: nn.Module = projection if changes else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return relu(second(relu(first(x))) + shortcut(x))."""
        inner = self.second(F.relu(self.first(x)))
        return F.relu(inner + self.shortcut(x))


class ResidualNetwork(nn.Module):
    """Classify images: a stem, a block of the same size, a block that halves the image, a linear layer on the mean."""

    def __init__(self, *, channels: int = 8, classes: int = 10) -> None:
        super().__init__()
        self.stem = ConvolutionBatchNorm(3, channels)
        self.same = ResidualBlock(channels, channels)
        self.halved = ResidualBlock(channels, 2 * channels, stride=2)
        self.head = nn.Linear(2 * channels, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return logits (batch, classes) for images (batch, 3, height, width)."""
        features = self.halved(self.same(F.relu(self.stem(images))))  # (batch, 2 channels, height / 2, width / 2)
        return self.head(features.mean(dim=(2, 3)))
