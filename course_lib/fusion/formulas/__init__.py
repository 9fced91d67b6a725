"""Formulas that people write out by hand, recognised in every order and spelling, with their numbers checked."""

from course_lib.fusion.formulas.activations import ACTIVATIONS, activations
from course_lib.fusion.formulas.layer_norm import layer_norm
from course_lib.fusion.formulas.reading import Reading
from course_lib.fusion.formulas.softmax import softmax

__all__ = [
    "ACTIVATIONS",
    "Reading",
    "activations",
    "layer_norm",
    "softmax",
]
