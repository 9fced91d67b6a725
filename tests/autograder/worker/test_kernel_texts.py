"""The checked texts of kernels, as the interpreter's process has them."""

import pytest

from autograder.protocol.requests.loads import Part
from autograder.worker.kernel_texts import interpreted_names

TEXT = """
FACTOR = tl.constexpr(1.5)

@triton.jit
def scaled(block):
    return FACTOR * block

def launcher(x):
    return FACTOR
"""


@pytest.mark.parametrize("exact", [False, True])
def test_a_constant_of_the_text_is_a_plain_number_where_kernels_and_launchers_look(exact: bool) -> None:
    names = interpreted_names((Part("answer", TEXT),), exact=exact)
    for each in (names["scaled"].fn, names["launcher"]):
        assert each.__globals__["FACTOR"] == names["FACTOR"] == 1.5
        assert type(each.__globals__["FACTOR"]) is float
