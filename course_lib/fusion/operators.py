"""The table of all operators that the passes know, with every spelling of each.

The same sum is written `x + y`, `torch.add(x, y)`, `x.add(y)`, and is `aten.add.Tensor` in an exported graph. A pass
never reads a node's target: it calls `course_lib.fusion.calls.read_call`, which uses this table. To support another
operator or spelling, add it to this table only.
"""

import ast
import builtins
import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature

import torch
import torch.nn.functional as F

_ROOTS: Mapping[str, object] = {
    "builtins": builtins,
    "operator": operator,
    "torch": torch,
    "F": F,
    "special": torch.special,
    "aten": torch.ops.aten,
}


@dataclass(frozen=True)
class Operator:
    """One operator, whichever way a program writes it: `x + y` and `torch.add(x, y)` are the same operator."""

    name: str
    signature: Signature  # parameters in schema order, with their defaults
    short: Callable[..., object]  # the spelling that `normalise` writes if only the required arguments matter
    full: Callable[..., object]  # the spelling that takes every argument by name
    commutes: bool = False  # whether its two first operands may be exchanged
    random: bool = False  # whether it may draw random numbers

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Spelling:
    """One way to call an operator."""

    operator: Operator
    signature: Signature
    in_place: bool = False


_SUM = "input other *alpha=1 *out=None"
_PAIR = "input other *out=None"
_ONE = "input *out=None"
_REDUCTION = "input dim=None keepdim=False *dtype=None *out=None"
_SPREAD = "input dim=None unbiased=True keepdim=False *correction=None *out=None"
_BATCH_NORM = "input running_mean running_var weight=None bias=None training=False momentum=0.1 eps=1e-5"
_CONVOLUTION = "input weight bias=None stride=1 padding=0 dilation=1 groups=1"
_SDPA = "query key value attn_mask=None dropout_p=0.0 is_causal=False *scale=None *enable_gqa=False"

# Name, flags, parameters, spellings. The first spelling is `short`, the second is `full`; a spelling whose parameters
# differ gives its own after it; a spelling with `!` writes its result into its first operand.
_TABLE: tuple[tuple[str, str, str, str], ...] = (
    ("add", "commutes", _SUM, "operator.add torch.add Tensor.add aten.add.Tensor aten.add.Scalar "
     "operator.iadd! Tensor.add_! aten.add_.Tensor! aten.add_.Scalar!"),
    ("sub", "", _SUM, "operator.sub torch.sub torch.subtract Tensor.sub Tensor.subtract aten.sub.Tensor "
     "aten.sub.Scalar operator.isub! Tensor.sub_! Tensor.subtract_! aten.sub_.Tensor! aten.sub_.Scalar!"),
    ("mul", "commutes", _PAIR, "operator.mul torch.mul torch.multiply Tensor.mul Tensor.multiply aten.mul.Tensor "
     "aten.mul.Scalar operator.imul! Tensor.mul_! Tensor.multiply_! aten.mul_.Tensor! aten.mul_.Scalar!"),
    ("div", "", "input other *rounding_mode=None *out=None", "operator.truediv torch.div torch.divide "
     "torch.true_divide Tensor.div Tensor.divide Tensor.true_divide aten.div.Tensor aten.div.Scalar "
     "operator.itruediv! Tensor.div_! Tensor.divide_! Tensor.true_divide_! aten.div_.Tensor! aten.div_.Scalar!"),
    ("neg", "", _ONE, "operator.neg torch.neg Tensor.neg torch.negative Tensor.negative aten.neg.default torch.neg_! "
     "Tensor.neg_! Tensor.negative_! aten.neg_.default!"),
    ("pow", "", "input exponent *out=None", "operator.pow torch.pow Tensor.pow aten.pow.Tensor_Scalar operator.ipow! "
     "Tensor.pow_! aten.pow_.Scalar!"),
    ("square", "", _ONE, "torch.square torch.square Tensor.square aten.square.default torch.square_! Tensor.square_!"),
    ("matmul", "", _PAIR, "operator.matmul torch.matmul Tensor.matmul aten.matmul.default "
     "aten.mm.default(input,other)"),
    ("bmm", "", "input mat2 *out=None", "torch.bmm torch.bmm Tensor.bmm aten.bmm.default"),
    ("transpose", "", "input dim0 dim1", "torch.transpose torch.transpose Tensor.transpose torch.swapaxes "
     "Tensor.swapaxes torch.swapdims Tensor.swapdims aten.transpose.int"),
    ("flatten", "", "input start_dim=0 end_dim=-1", "torch.flatten torch.flatten Tensor.flatten "
     "aten.flatten.using_ints"),
    ("unflatten", "", "input dim sizes", "torch.unflatten torch.unflatten Tensor.unflatten aten.unflatten.int"),
    ("addcmul", "", "input tensor1 tensor2 *value=1 *out=None", "torch.addcmul torch.addcmul Tensor.addcmul "
     "aten.addcmul.default Tensor.addcmul_! aten.addcmul_.default!"),
    ("addcdiv", "", "input tensor1 tensor2 *value=1 *out=None", "torch.addcdiv torch.addcdiv Tensor.addcdiv "
     "aten.addcdiv.default Tensor.addcdiv_! aten.addcdiv_.default!"),
    ("gelu", "", "input *approximate='none'", "F.gelu F.gelu aten.gelu.default"),
    ("relu", "", "input inplace=False", "F.relu F.relu torch.relu(input) Tensor.relu(input) aten.relu.default(input) "
     "torch.relu_(input)! Tensor.relu_(input)! aten.relu_.default(input)!"),
    ("silu", "", "input inplace=False", "F.silu F.silu aten.silu.default(input) aten.silu_.default(input)!"),
    ("sigmoid", "", _ONE, "torch.sigmoid torch.sigmoid F.sigmoid(input) Tensor.sigmoid special.expit "
     "aten.sigmoid.default torch.sigmoid_! Tensor.sigmoid_! aten.sigmoid_.default!"),
    ("tanh", "", _ONE, "torch.tanh torch.tanh F.tanh(input) Tensor.tanh aten.tanh.default torch.tanh_! Tensor.tanh_! "
     "aten.tanh_.default!"),
    ("erf", "", _ONE, "torch.erf torch.erf Tensor.erf special.erf aten.erf.default torch.erf_! Tensor.erf_! "
     "aten.erf_.default!"),
    ("erfc", "", _ONE, "torch.erfc torch.erfc Tensor.erfc special.erfc aten.erfc.default"),
    ("ndtr", "", _ONE, "special.ndtr special.ndtr aten.special_ndtr.default"),
    ("exp", "", _ONE, "torch.exp torch.exp Tensor.exp aten.exp.default torch.exp_! Tensor.exp_! aten.exp_.default!"),
    ("sqrt", "", _ONE, "torch.sqrt torch.sqrt Tensor.sqrt aten.sqrt.default torch.sqrt_! Tensor.sqrt_! "
     "aten.sqrt_.default!"),
    ("rsqrt", "", _ONE, "torch.rsqrt torch.rsqrt Tensor.rsqrt aten.rsqrt.default torch.rsqrt_! Tensor.rsqrt_! "
     "aten.rsqrt_.default!"),
    ("reciprocal", "", _ONE, "torch.reciprocal torch.reciprocal Tensor.reciprocal aten.reciprocal.default "
     "torch.reciprocal_! Tensor.reciprocal_! aten.reciprocal_.default!"),
    ("mean", "", _REDUCTION, "torch.mean torch.mean Tensor.mean aten.mean.dim aten.mean.default(input,dtype=None)"),
    ("sum", "", _REDUCTION, "torch.sum torch.sum Tensor.sum aten.sum.dim_IntList aten.sum.default(input,dtype=None)"),
    ("var", "", _SPREAD, "torch.var torch.var Tensor.var aten.var.dim aten.var.correction"),
    ("std", "", _SPREAD, "torch.std torch.std Tensor.std aten.std.dim aten.std.correction"),
    ("var_mean", "", _SPREAD, "torch.var_mean torch.var_mean aten.var_mean.dim aten.var_mean.correction"),
    ("amax", "", "input dim=() keepdim=False *out=None", "torch.amax torch.amax Tensor.amax aten.amax.default"),
    ("max", "", "input dim keepdim=False *out=None", "torch.max torch.max Tensor.max aten.max.dim"),
    ("masked_fill", "", "input mask value", "torch.masked_fill torch.masked_fill Tensor.masked_fill "
     "aten.masked_fill.Scalar aten.masked_fill.Tensor Tensor.masked_fill_! aten.masked_fill_.Scalar! "
     "aten.masked_fill_.Tensor!"),
    ("where", "", "condition input other *out=None", "torch.where torch.where aten.where.self aten.where.ScalarSelf "
     "aten.where.ScalarOther"),
    ("einsum", "", "equation first second", "torch.einsum torch.einsum aten.einsum.default"),
    ("unsqueeze", "", "input dim", "torch.unsqueeze torch.unsqueeze Tensor.unsqueeze aten.unsqueeze.default"),
    ("detach", "", "input", "torch.detach torch.detach Tensor.detach aten.detach.default"),
    ("getitem", "", "input index", "operator.getitem operator.getitem"),
    ("getattr", "", "input name", "builtins.getattr builtins.getattr"),
    ("dropout", "random", "input p=0.5 training=True inplace=False", "F.dropout F.dropout "
     "torch.dropout(input,p,training) aten.dropout.default(input,p,training) torch.dropout_(input,p,training)! "
     "aten.dropout_.default(input,p,training)!"),
    ("softmax", "", "input dim *dtype=None", "torch.softmax torch.softmax(input,dim,dtype=None) "
     "F.softmax(input,dim=None,_stacklevel=3,dtype=None) Tensor.softmax(input,dim,dtype=None) "
     "special.softmax(input,dim,dtype=None) aten.softmax.int(input,dim,dtype=None) "
     "aten._softmax.default(input,dim,half_to_float)"),
    ("layer_norm", "", "input normalized_shape weight=None bias=None eps=1e-5", "F.layer_norm F.layer_norm "
     "torch.layer_norm(input,normalized_shape,weight=None,bias=None,eps=1e-5,cudnn_enable=True) "
     "aten.layer_norm.default(input,normalized_shape,weight=None,bias=None,eps=1e-5,cudnn_enable=True)"),
    ("batch_norm", "", _BATCH_NORM, "F.batch_norm F.batch_norm torch.batch_norm(input,weight,bias,running_mean,"
     "running_var,training,momentum,eps,cudnn_enabled) aten.batch_norm.default(input,weight,bias,running_mean,"
     "running_var,training,momentum,eps,cudnn_enabled)"),
    ("linear", "", "input weight bias=None", "F.linear F.linear aten.linear.default"),
    ("conv1d", "", _CONVOLUTION, "F.conv1d F.conv1d aten.conv1d.default aten.conv1d.padding"),
    ("conv2d", "", _CONVOLUTION, "F.conv2d F.conv2d aten.conv2d.default aten.conv2d.padding"),
    ("scaled_dot_product_attention", "random", _SDPA,
     "F.scaled_dot_product_attention F.scaled_dot_product_attention aten.scaled_dot_product_attention.default"),
)  # fmt: skip

# Other names of the same parameters, including those of NumPy.
_NAMES = {"self": "input", "train": "training", "axis": "dim", "keepdims": "keepdim"}


@functools.cache
def operators() -> Mapping[str, Operator]:
    """Return every operator by its name."""
    return {name: _operator(name, flags, parameters, spellings) for name, flags, parameters, spellings in _TABLE}


@functools.cache
def function_spellings() -> Mapping[object, Spelling]:
    """Return the table from functions to spellings."""
    return {_target(name): spelling for name, spelling in _spellings() if not name.startswith("Tensor.")}


@functools.cache
def method_spellings() -> Mapping[str, Spelling]:
    """Return the table from names of tensor methods to spellings."""
    return {name.removeprefix("Tensor."): spelling for name, spelling in _spellings() if name.startswith("Tensor.")}


def schema_name(parameter: str) -> str:
    """Return the name of a parameter in the table, such as `input` for `self`."""
    return _NAMES.get(parameter, parameter)


def _operator(name: str, flags: str, parameters: str, spellings: str) -> Operator:
    short, full = (_target(word.partition("(")[0]) for word in spellings.split()[:2])
    return Operator(name, _signature(parameters.split()), short, full, "commutes" in flags, "random" in flags)


def _spellings() -> list[tuple[str, Spelling]]:
    found = []
    for name, _, parameters, spellings in _TABLE:
        for word in spellings.split():
            target, _, own = word.rstrip("!").partition("(")
            signature = _signature(own.rstrip(")").split(",") if own else parameters.split())
            found.append((target, Spelling(operators()[name], signature, word.endswith("!"))))
    return found


def _target(name: str) -> Callable[..., object]:
    root, *path = name.split(".")
    return functools.reduce(getattr, path, _ROOTS[root])  # type: ignore[return-value]  # a path of the table above


def _signature(words: list[str]) -> Signature:
    """Read parameters such as `input dim *dtype=None`; a star marks what can be given by name only."""
    parameters = []
    for word in words:
        name, _, default = word.lstrip("*").partition("=")
        kind = Parameter.KEYWORD_ONLY if word.startswith("*") else Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(Parameter(name, kind, default=ast.literal_eval(default) if default else Parameter.empty))
    return Signature(parameters)
