"""The nodes and words of the small language in which answers write kernels and launchers."""

import ast
from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DTYPES = _words("bfloat16 float16 float32 float64 int16 int32 int64 int8 uint8")
MODULES = ("math", "tl", "torch", "triton")
"""Names that stand only before a dot."""
BUILTINS = _words("abs bool float int isinstance len max min range tuple")
MORE_BUILTINS = _words("all any dict enumerate list str sum zip")  # in a launcher
LANGUAGE = _words(
    "abs advance arange argmax argmin atomic_add atomic_cas atomic_max atomic_min atomic_xchg bfloat16 broadcast "
    "broadcast_to cast cdiv ceil clamp constexpr cos cumprod cumsum debug_barrier div_rn dot dtype erf exp exp2 "
    "expand_dims fdiv flip float16 float32 float64 floor fma full int1 int16 int32 int64 int8 join load log log2 "
    "make_block_ptr math max max_constancy max_contiguous maximum min minimum multiple_of num_programs permute "
    "philox pointer_type program_id rand rand4x randint randint4x randn randn4x range ravel reduce reshape rsqrt "
    "sigmoid sin softmax split sqrt sqrt_rn static_assert static_range store sum swizzle2d tensor trans uint16 "
    "uint32 uint64 uint8 uint_to_uniform_float umulhi view where xor_sum zeros zeros_like"
)
"""What `tl.` may stand before."""
MATH = _words("abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi")
"""The same of `tl.math.`."""
OF_VALUES = _words(
    "T abs argmax argmin broadcast_to cast ceil cos cumsum dtype element_ty erf exp exp2 expand_dims floor log log2 "
    "logical_and logical_not logical_or max min ndim permute ravel reshape rsqrt shape sigmoid sin sqrt sum to "
    "trans type view"
)
"""Attributes of a value in a kernel."""
OF_TENSORS = _words(
    "device dim dtype element_size is_contiguous itemsize ndim new_empty new_full new_ones new_zeros numel shape "
    "size stride"
)
"""Attributes of a tensor in a launcher."""
OF_TORCH = _words(
    "Tensor bfloat16 bool contiguous_format double empty empty_like empty_strided float float16 float32 float64 full "
    "full_like half int int16 int32 int64 int8 long ones ones_like preserve_format uint8 zeros zeros_like"
)
"""What `torch.` may stand before, in a launcher."""
OF_TRITON = _words("cdiv next_power_of_2")
"""The same of `triton.`."""
OF_MATH = _words("ceil e exp floor inf log log2 pi prod sqrt")
DTYPES = frozenset(f"{module}.{name}" for module in ("tl", "torch") for name in _DTYPES)
COPIES = _words("contiguous clone copy_ to float half double reshape flatten")
"""Attributes with which a launcher would compute or copy."""

FOR_THE_COMPILER = _words("tl.assume tl.device_assert tl.device_print tl.static_print")
"""Calls that change no result; as statements they are left out."""
ERRORS = _words("AssertionError RuntimeError TypeError ValueError")
"""What a launcher may raise."""

Fields = Mapping[type[ast.AST], tuple[str, ...]]
NODES: Fields = {
    ast.Return: ("value",),
    ast.Assign: ("targets", "value"),
    ast.AugAssign: ("target", "op", "value"),
    ast.AnnAssign: ("target", "annotation", "value"),
    ast.For: ("target", "iter", "body"),
    ast.While: ("test", "body"),
    ast.If: ("test", "body", "orelse"),
    ast.Assert: ("test", "msg"),
    ast.Expr: ("value",),
    ast.Pass: (),
    ast.Break: (),
    ast.Continue: (),
    ast.BoolOp: ("op", "values"),
    ast.BinOp: ("left", "op", "right"),
    ast.UnaryOp: ("op", "operand"),
    ast.IfExp: ("test", "body", "orelse"),
    ast.Compare: ("left", "ops", "comparators"),
    ast.Call: ("func", "args", "keywords"),
    ast.keyword: ("arg", "value"),
    ast.Constant: ("value",),
    ast.Attribute: ("value", "attr", "ctx"),
    ast.Subscript: ("value", "slice", "ctx"),
    ast.Slice: ("lower", "upper", "step"),
    ast.Name: ("id", "ctx"),
    ast.List: ("elts", "ctx"),
    ast.Tuple: ("elts", "ctx"),
    ast.arguments: ("args", "kwonlyargs", "kw_defaults", "defaults"),
    ast.arg: ("arg",),
}
"""The nodes in a function, with the fields that are copied."""
OF_LAUNCHERS: Fields = {
    ast.Lambda: ("args", "body"),
    **dict.fromkeys((ast.GeneratorExp, ast.ListComp), ("elt", "generators")),
    ast.Dict: ("keys", "values"),
    ast.Set: ("elts",),
    ast.comprehension: ("target", "iter", "ifs"),
    ast.JoinedStr: ("values",),
    ast.FormattedValue: ("value", "conversion", "format_spec"),
    ast.Starred: ("value", "ctx"),
}
"""More of them, in a launcher."""
SYMBOLS = tuple(
    symbol
    for base in (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    for symbol in base.__subclasses__()
)
"""Nodes without fields."""
IMPORTS = (
    "import math",
    "import torch",
    "from __future__ import annotations",
    "from torch import Tensor",
    "import triton",
    "import triton.language as tl",
    "from triton import language as tl",
    *(f"from typing import {each}" for each in ("Any", "List", "Optional", "Tuple", "Union")),
)
ANNOTATIONS = ("tl.constexpr", "bool", "int", "float", "tl.int32", "tl.int64")
"""Annotations that a kernel's compiler or an operator's schema reads."""


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """Return those parameters that the language has."""
    return [*arguments.args, *arguments.kwonlyargs]


def called(node: ast.AST | None) -> str:
    """Return the name of what a node calls, such as `tl.load`; empty for other nodes."""
    return dotted(node.func) if isinstance(node, ast.Call) else ""


def dotted(node: ast.AST) -> str:
    """Return a name, or two with a dot between them; empty for other nodes."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
