"""Programs to capture and to make faster."""

from course_lib.models.bert import MaskedLanguageModel
from course_lib.models.huggingface import copy_bert_weights, copy_layer_weights
from course_lib.models.recurrent import LSTMCell, RecurrentNetwork
from course_lib.models.straight_line import option_programs, program_from_steps
from course_lib.models.transformer import TransformerConfig, TransformerEncoder, TransformerLayer
from course_lib.models.workloads import workload

__all__ = [
    "LSTMCell",
    "MaskedLanguageModel",
    "RecurrentNetwork",
    "TransformerConfig",
    "TransformerEncoder",
    "TransformerLayer",
    "copy_bert_weights",
    "copy_layer_weights",
    "option_programs",
    "program_from_steps",
    "workload",
]
