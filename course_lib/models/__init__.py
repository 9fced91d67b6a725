"""Programs to capture and to make faster."""

from course_lib.models.attention import SelfAttention, scaled_dot_product
from course_lib.models.config import TransformerConfig
from course_lib.models.gallery_entry import GalleryEntry
from course_lib.models.huggingface import copy_layer_weights
from course_lib.models.transformer import FeedForward, Projection, TransformerEncoder, TransformerLayer

__all__ = [
    "FeedForward",
    "GalleryEntry",
    "Projection",
    "SelfAttention",
    "TransformerConfig",
    "TransformerEncoder",
    "TransformerLayer",
    "copy_layer_weights",
    "scaled_dot_product",
]
