"""A function that a graph may call is on the list in all forms of ATen: each overload, and the one in place.

Which of them a captured graph has depends on how the function was written: `x.var(unbiased=False)` is `var.default`.
"""

from collections.abc import Iterator

import torch

from course_lib.graph.data.targets import ATEN, FUNCTIONAL, METHODS, TORCH

# Forms that are not on the list.
LEFT_OUT = {
    **dict.fromkeys(("addmm.dtype", "baddbmm.dtype", "bmm.dtype", "mm.dtype"), "only on GPUs"),
    **dict.fromkeys(
        (
            "narrow.Tensor", "tensor_split.tensor_indices_or_sections", "where.default", "repeat_interleave.Tensor",
            "repeat_interleave.self_Tensor",
        ),
        "the values of a tensor decide on sizes",
    ),
    **dict.fromkeys(("dim.default", "numel.default", "size.int"), "gives numbers, which a recorded graph holds"),
    **dict.fromkeys(("linspace.Scalar_Tensor", "linspace.Tensor_Scalar", "linspace.Tensor_Tensor"), "reads a number"),
    **dict.fromkeys(("float_power_.Scalar", "float_power_.Tensor"), "only on double precision, where `pow_` is equal"),
    "view.dtype": "changes no number, but what the bits mean",
    "to.device": "a graph names no device; a captured one has `to.dtype` in its place",
}  # fmt: skip


def _forms() -> Iterator[str]:
    """Yield all forms of all functions, without those that draw numbers, write into an `out`, or change a shape."""
    names = {*TORCH, *METHODS, *FUNCTIONAL, *(name.split(".")[0] for name in ATEN)}
    for name in sorted(names | {f"{name}_" for name in names}):
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            form = getattr(packet, overload)
            kinds = [str(argument.type) for argument in form._schema.arguments]
            other = any(argument.is_out for argument in form._schema.arguments) or "Generator" in str(kinds)
            other |= "Dimname" in str(kinds) or torch.Tag.inplace_view in form.tags
            tensors = "Tensor" in f"{kinds} {form._schema.returns}"
            if torch._C._dispatch_has_kernel(form.name()) and tensors and not other:
                yield f"{name}.{overload}"


def test_each_function_is_on_the_list_in_all_its_forms() -> None:
    assert set(_forms()) - set(ATEN) == LEFT_OUT.keys()
