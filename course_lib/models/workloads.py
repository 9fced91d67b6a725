"""Build named programs with inputs, in two sizes: "tiny" for a CPU, "base" for CUDA.

The base sizes are those of BERT-base and of a batch that fills a large GPU; not yet run on CUDA.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.errors import ModelError
from course_lib.models.bert import MaskedLanguageModel
from course_lib.models.recurrent import LSTMNetwork, RecurrentNetwork
from course_lib.models.transformer import FeedForward, TransformerConfig, TransformerEncoder, TransformerLayer

Size = Literal["tiny", "base"]
Inputs = tuple[torch.Tensor, ...]

TINY = TransformerConfig(hidden_size=32, num_heads=4, intermediate_size=64, vocab_size=100, max_positions=32)
BASE = TransformerConfig(768, 12, 3072, 12, 30522, 512)
PRE_NORM = {
    "tiny": TransformerConfig(hidden_size=32, num_heads=4, intermediate_size=64, norm_first=True),
    "base": TransformerConfig(768, 12, 3072, 12, 30522, 512, norm_first=True),
}
CONFIGS: Mapping[Size, TransformerConfig] = {"tiny": TINY, "base": BASE}
BATCHES: Mapping[Size, tuple[int, int]] = {"tiny": (2, 16), "base": (8, 512)}  # (batch, sequence)


@dataclass(frozen=True)
class Workload:
    """Hold a program of one size and build it with its inputs."""

    name: str
    size: Size
    make_model: Callable[[], nn.Module] = field(repr=False)
    make_inputs: Callable[[], Inputs] = field(repr=False)

    def build(
        self, *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32, seed: int = 0
    ) -> tuple[nn.Module, Inputs]:
        """Return the model in evaluation mode and its inputs; equal seeds give equal values on one device.

        `dtype` is that of parameters and of floating-point inputs. Random states are left as they were.
        """
        with torch.random.fork_rng(), torch.device(device):
            torch.manual_seed(seed)
            model = self.make_model().to(dtype).eval()
            inputs = self.make_inputs()
        return model, tuple(each.to(dtype) if each.is_floating_point() else each for each in inputs)


def workload(name: str, size: Size = "tiny") -> Workload:
    """Return a workload by name.

        >>> model, (tokens,) = workload("masked_language_model").build()
        >>> model(tokens).shape
        torch.Size([2, 16, 100])

    The names: "perceptron", "feed_forward", "bert_layer", "bert_layer_norm_first", "encoder", "masked_language_model",
    "rnn", "lstm" and "residual_network", each in the sizes "tiny", for a CPU, and "base". Raises `ModelError` for
    others.
    """
    found = WORKLOADS.get((name, size))
    if found is None:
        names = ", ".join(sorted({known for known, _ in WORKLOADS}))
        raise ModelError(f'workload got {name!r} in size {size!r}; it knows {names}, each in size "tiny" and "base".')
    return found


def _workloads(size: Size) -> list[Workload]:
    config, (batch, sequence), tiny = CONFIGS[size], BATCHES[size], size == "tiny"
    width, inner = config.hidden_size, config.intermediate_size

    def hidden() -> torch.Tensor:
        return torch.randn(batch, sequence, width)

    def tokens() -> Inputs:
        return (torch.randint(config.vocab_size, (batch, sequence)),)

    def steps() -> Inputs:
        return (torch.randn(sequence, batch, width),)

    def images() -> Inputs:
        return (torch.randn(batch, 3, 16, 16) if tiny else torch.randn(64, 3, 224, 224),)

    return [
        Workload("perceptron", size, lambda: Perceptron(width, inner, width), lambda: (hidden(),)),
        Workload("feed_forward", size, lambda: FeedForward(config), lambda: (hidden(), hidden())),
        Workload("bert_layer", size, lambda: TransformerLayer(config), lambda: (hidden(),)),
        Workload("bert_layer_norm_first", size, lambda: TransformerLayer(PRE_NORM[size]), lambda: (hidden(),)),
        Workload("encoder", size, lambda: TransformerEncoder(config), tokens),
        Workload("masked_language_model", size, lambda: MaskedLanguageModel(config), tokens),
        Workload("rnn", size, lambda: RecurrentNetwork(width, width), steps),
        Workload("lstm", size, lambda: LSTMNetwork(width, width), steps),
        Workload("residual_network", size, lambda: ResidualNetwork(channels=8 if tiny else 64), images),
    ]


WORKLOADS: Mapping[tuple[str, Size], Workload] = {
    (each.name, each.size): each for each in (*_workloads("tiny"), *_workloads("base"))
}


class Perceptron(nn.Module):
    """Apply a linear layer, GELU, and a linear layer."""

    def __init__(self, in_features: int, hidden_size: int, out_features: int) -> None:
        super().__init__()
        self.up = nn.Linear(in_features, hidden_size)
        self.down = nn.Linear(hidden_size, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (..., out features) for (..., in features)."""
        return self.down(F.gelu(self.up(x)))


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
    """Classify images: a stem, a block of the same size, a block that halves the image, a linear layer on the mean.

    Its BatchNorm can be folded into its convolutions. Source: He et al., Deep Residual Learning for Image Recognition
    (2015), with two blocks.
    """

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
