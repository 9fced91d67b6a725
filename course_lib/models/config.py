"""The sizes of a transformer."""

from dataclasses import dataclass, fields

from course_lib.errors import ModelError


@dataclass(frozen=True)
class TransformerConfig:
    """Everything that decides what a transformer computes, apart from its weights.

    The defaults make a model that trains on one CPU core; BERT-base is `TransformerConfig(768, 12, 3072, 12, 30522,
    512)`.
    """

    hidden_size: int = 128
    num_heads: int = 4
    intermediate_size: int = 512  # width of the feed-forward part
    num_layers: int = 2
    vocab_size: int = 1024
    max_positions: int = 128  # the longest sequence
    dropout: float = 0.1  # probability, at every place where BERT has dropout
    norm_first: bool = False  # LayerNorm before attention and feed-forward (as in GPT-2) instead of after (as in BERT)
    layer_norm_eps: float = 1e-12
    num_segments: int = 2  # how many sentences BERT tells apart in one input

    def __post_init__(self) -> None:
        """Refuse sizes that cannot work."""
        for size in fields(self):
            if size.type in (int, "int") and getattr(self, size.name) < 1:
                raise ModelError(f"TransformerConfig got {size.name}={getattr(self, size.name)}; it expects 1 or more.")
        if self.hidden_size % self.num_heads:
            raise ModelError(
                f"TransformerConfig got hidden_size={self.hidden_size} and num_heads={self.num_heads}; "
                "each head takes an equal part, so choose a hidden size that is a multiple of the number of heads."
            )
        if not 0 <= self.dropout < 1:
            raise ModelError(f"TransformerConfig got dropout={self.dropout}; it expects a probability below 1.")

    @property
    def head_size(self) -> int:
        """The width of one attention head."""
        return self.hidden_size // self.num_heads
