"""Whether an answer fits the model that the notebook of the capstone shows, where it does not fit a drawn one.

Such an answer looks for names, or holds numbers, that it read in the notebook. So a message can say so.
"""

import torch

from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.kinds.graph_values import require_equal
from autograder.host.session import AnswerFailedError
from autograder.host.traced import Program, TensorSpec, draw_inputs, traced
from course_lib.models import TransformerConfig, TransformerLayer

CONFIG = TransformerConfig(max_positions=64, dropout=0.1)
BATCH, TOKENS = 2, 8
BY_HEART = (
    "The model that the notebook shows becomes cheaper, and stays right. Here the parts have other names, p and eps "
    "other numbers, and a residual may be the first term of its sum. So find parts by their type and by who reads "
    "them, as in `type(gm.get_submodule(node.target)) is nn.LayerNorm`, and read p and eps from the modules."
)


def shown_layer() -> torch.nn.Module:
    """Return the layer of the notebook."""
    return TransformerLayer(CONFIG)


def said_by_heart(answer: GraphAnswer, draw: Draw) -> str:
    """Return a sentence for an answer that makes the notebook's own model cheaper; empty for any other answer."""
    inputs = TensorSpec((BATCH, TOKENS, CONFIG.hidden_size)), TensorSpec((BATCH, 1, 1, TOKENS))
    source = traced(Program("that the notebook shows", shown_layer, inputs, 0, training=True), draw)
    doubles = tuple(each.double() for each in draw_inputs(inputs, draw))
    draws = draw.integer(0, 2**31)
    try:
        artifact = answer.transform(source, own=True)
        exact = artifact.with_tensors({name: tensor.double() for name, tensor in source.tensors.items()})
        by_position = answer.drawn_by_position(exact, doubles)
        require_equal(answer, source, exact, doubles, draw, False, draws=draws, by_position=by_position)
    except (CheckFailedError, AnswerFailedError):
        return ""
    calls = sum(node.op.startswith("call_") for node in source.module.graph.nodes)
    return BY_HEART if artifact.calls() < calls else ""
