"""BERT for masked language modelling, equal to Hugging Face's `BertForMaskedLM` weight by weight.

Source: Devlin et al., BERT (2018).
"""

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.models.transformer import TransformerConfig, TransformerLayer


def padding_mask(kept: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return the mask that is added to attention scores to exclude padding.

        >>> padding_mask(torch.tensor([[1, 1, 0]])).shape
        torch.Size([1, 1, 1, 3])

    `kept` has shape (batch, sequence) and is 1 or True where there is text. The result has shape (batch, 1, 1,
    sequence). It is 0 at text, and the lowest number of `dtype` at padding. With -inf, a row of only padding would
    give NaN.
    """
    return torch.zeros(kept.shape, dtype=dtype, device=kept.device).masked_fill(kept == 0, torch.finfo(dtype).min)[
        :, None, None, :
    ]


class BertEmbeddings(nn.Module):
    """Add the embeddings of tokens, segments and positions.

    Token 0 is an ordinary token here. Hugging Face's BERT uses it for padding, so its embedding gets no gradient there.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.segments = nn.Embedding(config.num_segments, config.hidden_size)
        self.positions = nn.Embedding(config.max_positions, config.hidden_size)
        self.norm = nn.Identity() if config.norm_first else nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, tokens: torch.Tensor, segments: torch.Tensor | None = None) -> torch.Tensor:
        """Return (batch, sequence, hidden) for token and segment numbers (batch, sequence); segment 0 if not given."""
        # Counting ones gives 0, 1, 2, … for any length; torch.arange would need the length as a number while tracing.
        order = torch.cumsum(torch.ones_like(tokens), dim=1) - 1
        if segments is None:
            segments = torch.zeros_like(tokens)
        total = self.tokens(tokens) + self.segments(segments) + self.positions(order)
        return self.dropout(self.norm(total))


class Bert(nn.Module):
    """Compute hidden states by embeddings and a stack of layers."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.embeddings = BertEmbeddings(config)
        self.layers = nn.ModuleList(TransformerLayer(config) for _ in range(config.num_layers))
        last_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.norm = last_norm if config.norm_first else nn.Identity()

    def forward(
        self, tokens: torch.Tensor, mask: torch.Tensor | None = None, segments: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return hidden states (batch, sequence, hidden).

        For `mask` see `padding_mask`, and for `segments` see `BertEmbeddings.forward`.
        """
        hidden = self.embeddings(tokens, segments)
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return self.norm(hidden)


class MaskedLanguageHead(nn.Module):
    """Compute a score for each word of the vocabulary from hidden states."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return (batch, sequence, vocabulary) for hidden states (batch, sequence, hidden)."""
        return self.decoder(self.norm(F.gelu(self.dense(hidden))))


class MaskedLanguageModel(nn.Module):
    """Predict masked words by BERT and its head; embedding and decoder share one matrix."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.bert = Bert(config)
        self.head = MaskedLanguageHead(config)
        self.head.decoder.weight = self.bert.embeddings.tokens.weight
        self.apply(_initialise)

    def forward(
        self, tokens: torch.Tensor, mask: torch.Tensor | None = None, segments: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return logits (batch, sequence, vocabulary) for token numbers (batch, sequence).

        `mask` is added to the attention scores: 0 for keys that a query may attend to, -inf or a very low number for
        others. It broadcasts to (batch, heads, sequence, sequence). Hugging Face's mask of 1 and 0 does not fit here;
        `padding_mask` makes this mask from it. `segments` has the shape of `tokens` and gives each token the number of
        its sentence, by default 0.
        """
        return self.head(self.bert(tokens, mask, segments))


def _initialise(module: nn.Module) -> None:
    """Initialise as BERT does: weights with a standard deviation of 0.02, biases at 0."""
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
