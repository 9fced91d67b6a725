"""The functions and methods that a graph written as data may call, each under one name.

The tables below are the whole allow-list: a name from outside is looked up here and never resolved with
`getattr`. The list deliberately omits functions that read or write files, run code that they are given,
resize storage, return uninitialised memory, or return raw pointers.
"""

import builtins
import functools
import math
import operator
import sys
from collections.abc import Iterable, Mapping

import torch


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Name of an operator function -> its number of arguments. Generated code shows only this many, so the
# number is checked.
OPERATORS: Mapping[str, int] = {
    **dict.fromkeys(_words("add and_ eq floordiv ge getitem gt le lshift lt matmul mod mul ne or_ pow rshift"), 2),
    **dict.fromkeys(_words("sub truediv xor"), 2),
    **dict.fromkeys(_words("abs invert neg not_ pos"), 1),
}
INPLACE_OPERATORS = frozenset(_words("iadd iand ifloordiv imatmul imod imul ior ipow isub itruediv ixor"))

FUNCTIONAL = _words(
    """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool2d avg_pool1d avg_pool2d batch_norm bilinear
    binary_cross_entropy binary_cross_entropy_with_logits celu conv1d conv2d conv3d conv_transpose2d
    cosine_similarity cross_entropy dropout dropout1d dropout2d elu embedding gelu glu group_norm hardsigmoid
    hardswish hardtanh huber_loss instance_norm interpolate kl_div l1_loss layer_norm leaky_relu linear
    log_softmax logsigmoid max_pool1d max_pool2d mish mse_loss nll_loss normalize one_hot pad pixel_shuffle
    prelu relu relu6 rms_norm scaled_dot_product_attention selu sigmoid silu smooth_l1_loss softmax softplus
    softsign tanh tanhshrink threshold
    """
)

TORCH = _words(
    """
    abs acos add addcdiv addcmul addmm all amax amin aminmax any arange argmax argmin atan2 baddbmm bernoulli
    bitwise_and bitwise_not bitwise_or bitwise_xor bmm broadcast_to cat ceil celu chunk clamp clamp_max clamp_min
    clip clone column_stack concat concatenate conv1d conv2d cos cosh cumprod cumsum diagonal div divide dot dropout
    dstack einsum eq erf erfc exp exp2 expm1 eye flatten flip floor floor_divide fmod full full_like gather ge gt
    heaviside hstack hypot index_select inner isfinite isinf isnan layer_norm le lerp linspace log log10 log1p log2
    log_softmax logaddexp logical_and logical_not logical_or logical_xor logsumexp lt masked_fill matmul max maximum
    mean min minimum mm moveaxis movedim mul multiply mv narrow ne neg negative norm ones ones_like outer permute
    pow prelu prod rand rand_like randn randn_like reciprocal relu relu_ remainder repeat_interleave reshape
    rms_norm roll round rsqrt rsub scatter scatter_add select selu sigmoid sigmoid_ sign sin sinh softmax split sqrt
    square squeeze stack std std_mean sub subtract sum swapaxes swapdims t take tan tanh tanh_ tensor_split tile
    topk transpose tril triu true_divide trunc unbind unflatten unsqueeze var var_mean vstack where zeros zeros_like
    """
)

METHODS = frozenset(
    _words(
        """
        abs abs_ add add_ addcdiv addcdiv_ addcmul addcmul_ addmm all amax amin aminmax any argmax argmin baddbmm
        bfloat16 bmm bool broadcast_to ceil chunk clamp clamp_ clamp_max clamp_min clip clone contiguous copy_ cos
        cumsum detach diagonal dim div div_ divide dot double eq erf exp exp2 exp_ expand expand_as expm1 fill_ flatten
        flip float floor floor_divide gather ge gt half index_select int isfinite isinf isnan le lerp log log1p
        log_softmax logical_and logical_not logical_or logsumexp long lt masked_fill masked_fill_ matmul max maximum
        mean min minimum mm movedim mul mul_ mv narrow ndimension ne neg neg_ new_full new_ones new_zeros norm numel
        outer permute pow pow_ prod reciprocal relu relu_ remainder repeat repeat_interleave reshape reshape_as roll
        round rsqrt scatter scatter_add select sigmoid sigmoid_ sign sin size softmax split sqrt sqrt_ square
        squeeze std sub sub_ sum swapaxes t tanh tanh_ tile to topk transpose tril triu true_divide type_as unbind
        unflatten unsqueeze var view view_as where zero_
        """
    )
)

OWN = "own."
"""The names of operators that a caller adds to the table begin so, and no name of the table does."""

ATTRIBUTES = frozenset({"T", "device", "dtype", "mT", "ndim", "shape"})  # what `getattr` may read in a graph

# Registered by importing course_lib.kernels.
COURSE_OPERATORS = _words(
    """
    bias_dropout_residual_layer_norm bias_gelu bias_silu residual_layer_norm scale_dropout_residual_rms_norm
    """
)

DTYPES: Mapping[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in _words("bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 uint8")
}


def _from(prefix: str, owner: object, names: Iterable[str]) -> dict[str, object]:
    # A name that this version of PyTorch lacks is left out; no other object can take its place.
    return {f"{prefix}.{name}": getattr(owner, name) for name in names if hasattr(owner, name)}


def _overloads() -> dict[str, object]:
    table: dict[str, object] = {}
    for name in ATEN:
        packet, overload = name.split(".")
        if hasattr(torch.ops.aten, packet) and hasattr(getattr(torch.ops.aten, packet), overload):
            table[f"torch.ops.aten.{name}"] = getattr(getattr(torch.ops.aten, packet), overload)
    return table


def _course_operators() -> dict[str, object]:
    table = _from("torch.ops.course_lib", torch.ops.course_lib, COURSE_OPERATORS)
    return table | {f"{name}.default": packet.default for name, packet in table.items()}  # type: ignore[attr-defined]


@functools.cache
def _fixed_functions() -> Mapping[str, object]:
    return {
        "builtins.getattr": builtins.getattr,
        "math.sqrt": math.sqrt,
        **_from("operator", operator, (*OPERATORS, *sorted(INPLACE_OPERATORS))),
        **_from("torch.nn.functional", torch.nn.functional, FUNCTIONAL),
        **_from("torch", torch, TORCH),
        **_overloads(),
    }


def functions() -> Mapping[str, object]:
    """Return the table from name to function; `course_lib.kernels` must be imported for the course's operators."""
    return {**_fixed_functions(), **_course_operators()}


def function_names() -> Mapping[object, str]:
    """Return the table from function to name. A function with two names gets the name that the tables list first.

    The functions of `course_lib.kernels` get the names of their operators.
    """
    return _function_names(tuple(_course_operators()))


@functools.cache
def _function_names(
    _registered: tuple[str, ...],
) -> Mapping[object, str]:  # again after each registration
    names: dict[object, str] = {}
    for name, function in functions().items():
        names.setdefault(function, name)
    kernels = sys.modules.get("course_lib.kernels")  # not imported here: what registers the operators imports more
    for name in COURSE_OPERATORS:
        if hasattr(kernels, name):
            names.setdefault(getattr(kernels, name), f"torch.ops.course_lib.{name}")
    return names


# Overloads of ATen: core ATen (tag `torch.Tag.core`), and others that occur in captured graphs. In-place operators
# are listed if they keep the shape and the storage of a tensor. Not listed: operators that return uninitialised memory
# (`empty`), and those that access memory outside the tensor (`as_strided`, `resize_`, storage offsets).
_NAMES = """
    __and__.Tensor __or__.Tensor __xor__.Tensor _adaptive_avg_pool2d.default _adaptive_avg_pool2d_backward.default
    _adaptive_avg_pool3d.default _assert_scalar.default _cdist_forward.default _embedding_bag.default
    _fft_c2r.default _fft_r2c.default
    _log_softmax.default _native_batch_norm_legit.default _native_batch_norm_legit.no_stats
    _native_batch_norm_legit_no_training.default _pdist_forward.default _softmax.default
    _softmax_backward_data.default _to_copy.default _unsafe_view.default abs.default abs_.default acos.default
    acosh.default adaptive_avg_pool1d.default add.Scalar add.Tensor add_.Scalar add_.Tensor addcmul.default
    addmm.default alias.default amax.default amin.default aminmax.default any.default any.dim any.dims
    arange.default arange.start arange.start_step argmax.default argmin.default argsort.default asin.default
    asinh.default atan.default atan2.default atanh.default avg_pool1d.default avg_pool2d.default
    avg_pool2d_backward.default avg_pool3d.default bitwise_and.Scalar bitwise_and.Tensor bitwise_not.default
    bitwise_or.Scalar bitwise_or.Tensor bitwise_xor.Scalar bitwise_xor.Tensor bmm.default broadcast_to.default
    cat.default ceil.default celu.default chunk.default clamp.Tensor clamp.default clamp_.default
    clamp_max.default clamp_max_.default clamp_min.default clamp_min_.default clip.default clone.default
    column_stack.default concat.default concatenate.default col2im.default constant_pad_nd.default
    contiguous.default convolution.default convolution_backward.default copy.default copy_.default cos.default
    cos_.default count_nonzero.default cosh.default cumprod.default cumsum.default detach.default diagonal.default
    diff.default div.Scalar div.Scalar_mode div.Tensor div.Tensor_mode div_.Scalar div_.Tensor divide.Scalar
    divide.Tensor dot.default dropout.default dstack.default einsum.default elu.default embedding.default
    embedding_dense_backward.default eq.Scalar eq.Tensor erf.default erfc.default exp.default exp2.default exp_.default
    expand.default expand_as.default expm1.default eye.default fill.Scalar fill_.Scalar fill_.Tensor
    flatten.using_ints flip.default floor.default floor_divide.Scalar floor_divide.default fmod.Scalar fmod.Tensor
    full.default full_like.default gather.default ge.Scalar ge.Tensor gelu.default gelu_backward.default
    grid_sampler_2d.default gt.Scalar gt.Tensor hardsigmoid.default hardswish.default hardtanh.default
    hstack.default index.Tensor index_put.default index_select.default isinf.default isnan.default
    layer_norm.default le.Scalar le.Tensor leaky_relu.default lerp.Scalar lerp.Tensor lift_fresh_copy.default
    linalg_norm.default linalg_vector_norm.default linear.default linspace.default log.default log10.default
    log1p.default log2.default log_softmax.int logaddexp.default logical_and.default logical_not.default
    logical_or.default logical_xor.default logsumexp.default lt.Scalar lt.Tensor masked_fill.Scalar
    masked_fill.Tensor masked_fill_.Scalar masked_fill_.Tensor masked_scatter.default matmul.default max.default
    max.dim max.other max_pool2d_with_indices.default max_pool2d_with_indices_backward.default
    max_pool3d_with_indices.default maximum.default mean.default mean.dim min.default min.dim min.other
    minimum.default mish.default mm.default movedim.int mse_loss.default mul.Scalar mul.Tensor mul_.Scalar
    mul_.Tensor mv.default nan_to_num.default narrow.default native_dropout.default native_group_norm.default
    native_group_norm_backward.default native_layer_norm.default native_layer_norm_backward.default ne.Scalar
    ne.Tensor neg.default neg_.default negative.default new_full.default new_ones.default new_zeros.default
    nonzero.default norm.ScalarOpt_dim numpy_T.default ones.default ones_like.default outer.default pad.default
    permute.default pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor prod.default prod.dim_int rand.default
    randn.default randperm.default reciprocal.default reflection_pad1d.default reflection_pad2d.default
    reflection_pad3d.default relu.default relu_.default remainder.Scalar remainder.Tensor repeat.default
    replication_pad2d.default replication_pad3d.default reshape.default rms_norm.default roll.default
    round.default rsqrt.default rsub.Scalar scalar_tensor.default scaled_dot_product_attention.default scatter.src
    scatter.value scatter_add.default scatter_reduce.two select.int select_backward.default select_scatter.default
    selu.default sigmoid.default sigmoid_.default sigmoid_backward.default sign.default silu.default
    silu_backward.default sin.default sin_.default sinh.default slice.Tensor slice_backward.default
    slice_scatter.default softmax.int softplus.default sort.default split.Tensor split_with_sizes.default
    sqrt.default sqrt_.default square.default squeeze.default squeeze.dim squeeze.dims stack.default
    std.correction std.dim std_mean.correction sub.Scalar sub.Tensor sub_.Scalar sub_.Tensor sum.default
    sum.dim_IntList sym_numel.default sym_size.int t.default tan.default tanh.default tanh_.default
    tanh_backward.default threshold_backward.default to.dtype topk.default transpose.int trapezoid.dx trapezoid.x
    tril.default triu.default trunc.default type_as.default unbind.int unflatten.int unsafe_split.Tensor
    unsqueeze.default upsample_bilinear2d.vec upsample_nearest2d.vec var.correction var.dim var_mean.correction
    view.default view_as.default vstack.default where.Scalar where.ScalarOther where.ScalarSelf where.self
    zero_.default zeros.default zeros_like.default
"""

ATEN: tuple[str, ...] = tuple(_NAMES.split())
