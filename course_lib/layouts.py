"""Know tensors that are not plain: sparse, nested, masked, quantised, packed, or of oneDNN."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor
from torch.masked import MaskedTensor
from torch.utils._pytree import tree_leaves

from course_lib.errors import CourseError

ADVICE: Mapping[str, str] = {
    "sparse": "Give it dense, with to_dense()",
    "oneDNN": "Give it dense, with to_dense()",
    "nested": "Give one padded tensor, with torch.nested.to_padded_tensor, and the lengths",
    "masked": "Give its data and its mask, with get_data() and get_mask()",
    "quantised": "Give it as floating point, with dequantize()",
    "packed": "Give it as bytes, with view(torch.uint8)",
}


def kind_of(tensor: Tensor) -> str:
    """Return what a tensor is that is not plain, a key of `ADVICE`; an empty text for a plain one.

    >>> kind_of(torch.eye(2).to_sparse()), kind_of(torch.eye(2))
    ('sparse', '')
    """
    if isinstance(tensor, MaskedTensor):
        return "masked"
    if tensor.is_nested:
        return "nested"
    if tensor.is_quantized:
        return "quantised"
    if tensor.dtype == torch.float4_e2m1fn_x2:
        return "packed"
    return "" if tensor.layout == torch.strided else "oneDNN" if tensor.is_mkldnn else "sparse"


def require_plain(
    asked_by: str, inputs: object, error: type[CourseError], held: Iterable[tuple[str, Tensor]] = ()
) -> None:
    """Raise `error`, which names the function that asks, for an input or a held tensor that is not plain.

    Calls of PyTorch that these functions rely on fail for such a tensor, or say nothing of its numbers.
    """
    given = (
        (f"input {number}", value) for number, value in enumerate(tree_leaves(inputs)) if isinstance(value, Tensor)
    )
    for place, tensor in (*given, *held):
        if kind := kind_of(tensor):
            raise error(
                f"{asked_by} got a {kind} tensor as {place}; it expects tensors with one number for each place, in "
                f"memory of their own. {ADVICE[kind]}."
            )


def dense(tensor: Tensor) -> Tensor:
    """Return a tensor of plain layout with the same numbers: the tensor itself, if it is plain.

    >>> dense(torch.eye(2).to_sparse())
    tensor([[1., 0.],
            [0., 1.]])
    """
    kind = kind_of(tensor)
    if kind == "nested":
        return torch.cat([dense(part).flatten() for part in tensor.unbind()])
    if kind == "masked":
        return torch.where(tensor.get_mask(), tensor.get_data(), 0)  # type: ignore[attr-defined]  # of its class
    if kind == "quantised":
        return tensor.dequantize()
    if kind == "packed":
        return tensor.view(torch.uint8)
    return tensor.to_dense() if kind else tensor
