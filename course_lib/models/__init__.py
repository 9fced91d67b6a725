"""Programs to capture and to make faster."""

from course_lib.models.attention import SelfAttention, attention_probabilities, scaled_dot_product
from course_lib.models.bert import Bert, BertEmbeddings, MaskedLanguageHead, MaskedLanguageModel, padding_mask
from course_lib.models.config import TransformerConfig
from course_lib.models.convolutional import ConvolutionBatchNorm, ResidualBlock, ResidualNetwork
from course_lib.models.gallery_entry import GalleryEntry
from course_lib.models.huggingface import copy_bert_weights, copy_layer_weights
from course_lib.models.option_programs import option_programs
from course_lib.models.perceptron import Perceptron
from course_lib.models.recurrent import LSTMCell, LSTMNetwork, RecurrentCell, RecurrentNetwork
from course_lib.models.straight_line import program_from_steps
from course_lib.models.transformer import FeedForward, Projection, TransformerEncoder, TransformerLayer
from course_lib.models.workloads import Workload, workload

__all__ = [
    "Bert",
    "BertEmbeddings",
    "ConvolutionBatchNorm",
    "FeedForward",
    "GalleryEntry",
    "LSTMCell",
    "LSTMNetwork",
    "MaskedLanguageHead",
    "MaskedLanguageModel",
    "Perceptron",
    "Projection",
    "RecurrentCell",
    "RecurrentNetwork",
    "ResidualBlock",
    "ResidualNetwork",
    "SelfAttention",
    "TransformerConfig",
    "TransformerEncoder",
    "TransformerLayer",
    "Workload",
    "attention_probabilities",
    "copy_bert_weights",
    "copy_layer_weights",
    "option_programs",
    "padding_mask",
    "program_from_steps",
    "scaled_dot_product",
    "workload",
]
