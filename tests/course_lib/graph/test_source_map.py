"""Each block of generated loops is traced back to the operators and lines that it computes."""

import torch
from torch.nn import functional as F

from course_lib.graph.generated_code import lowered
from course_lib.graph.source_map import source_map

INPUTS = (torch.ones(8, 16), torch.ones(16, 33), torch.ones(33))


def tail(x, w, b):
    h = x @ w + b
    h = F.gelu(h)
    y = h / h.sum(1, keepdim=True)
    return y, F.pad(x, (0, 1))


def test_rows_are_the_blocks_of_the_text_in_its_order():
    call, fused, padded = source_map(tail, INPUTS).rows
    assert call == ("", "library", "", "addmm", "h = x @ w + b")
    assert fused[:3] == ("0", "8, 8 x 33", "33")
    assert {"erf", "sum", "div"} <= set(fused[3].split(", "))
    assert fused[4] == "h = F.gelu(h); y = h / h.sum(1, keepdim=True)"
    assert padded[:4] == ("1", "8 x 17", "", "constant_pad_nd")
    text = lowered(tail, INPUTS).code[0]
    assert text.index("tmp_acc0") < text.index("17L")


def test_every_graph_has_its_rows():
    def broken(x):
        h = x.sin()
        torch._dynamo.graph_break()
        return h.cos()

    assert [row[3] for row in source_map(broken, INPUTS[:1]).rows] == ["sin", "cos"]
