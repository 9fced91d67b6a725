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
    heaviside hstack hypot index_add index_copy index_fill index_select
    inner isfinite isinf isnan layer_norm le lerp linspace log log10 log1p log2
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
        flip float floor floor_divide gather ge gt half index_add index_copy index_fill
        index_select int isfinite isinf isnan le lerp log log1p
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
    __and__.Scalar __and__.Tensor __lshift__.Scalar __lshift__.Tensor __or__.Scalar __or__.Tensor __rshift__.Scalar
    __rshift__.Tensor __xor__.Scalar __xor__.Tensor _adaptive_avg_pool2d.default _adaptive_avg_pool2d_backward.default
    _adaptive_avg_pool3d.default _assert_scalar.default _cdist_forward.default _embedding_bag.default _fft_c2r.default
    _fft_r2c.default _log_softmax.default _native_batch_norm_legit.default _native_batch_norm_legit.no_stats
    _native_batch_norm_legit_no_training.default _pdist_forward.default _prelu_kernel.default _safe_softmax.default
    _softmax.default _softmax_backward_data.default _to_copy.default _unsafe_view.default abs.default abs_.default
    absolute.default absolute_.default acos.default acos_.default acosh.default acosh_.default
    adaptive_avg_pool1d.default adaptive_avg_pool2d.default adaptive_max_pool2d.default add.Scalar add.Tensor
    add_.Scalar add_.Tensor addcdiv.default addcdiv_.default addcmul.default addcmul_.default addmm.default
    addmm_.default adjoint.default alias.default all.default all.dim all.dims amax.default amin.default aminmax.default
    any.default any.dim any.dims arange.default arange.start arange.start_step argmax.default argmin.default
    argsort.default argsort.stable asin.default asin_.default asinh.default asinh_.default atan.default atan2.default
    atan2_.default atan_.default atanh.default atanh_.default atleast_1d.Sequence atleast_1d.default atleast_2d.Sequence
    atleast_2d.default atleast_3d.Sequence atleast_3d.default avg_pool1d.default avg_pool2d.default
    avg_pool2d_backward.default avg_pool3d.default baddbmm.default baddbmm_.default batch_norm.default bilinear.default
    binary_cross_entropy.default binary_cross_entropy_with_logits.default bitwise_and.Scalar bitwise_and.Scalar_Tensor
    bitwise_and.Tensor bitwise_and_.Scalar bitwise_and_.Tensor bitwise_not.default bitwise_not_.default
    bitwise_or.Scalar bitwise_or.Scalar_Tensor bitwise_or.Tensor bitwise_or_.Scalar bitwise_or_.Tensor
    bitwise_xor.Scalar bitwise_xor.Scalar_Tensor bitwise_xor.Tensor bitwise_xor_.Scalar bitwise_xor_.Tensor bmm.default
    broadcast_tensors.default broadcast_to.default cat.default ceil.default ceil_.default celu.default celu_.default
    chunk.default clamp.Tensor clamp.default clamp_.Tensor clamp_.default clamp_max.Tensor clamp_max.default
    clamp_max_.Tensor clamp_max_.default clamp_min.Tensor clamp_min.default clamp_min_.Tensor clamp_min_.default
    clip.Tensor clip.default clip_.Tensor clip_.default clone.default col2im.default column_stack.default concat.default
    concatenate.default constant_pad_nd.default contiguous.default conv1d.default conv1d.padding conv2d.default
    conv2d.padding conv3d.default conv3d.padding conv_transpose2d.input convolution.default convolution_backward.default
    copy.default copy_.default copysign.Scalar copysign.Tensor copysign_.Scalar copysign_.Tensor cos.default
    cos_.default cosh.default cosh_.default cosine_similarity.default count_nonzero.default count_nonzero.dim_IntList
    cumprod.default cumprod_.default cumsum.default cumsum_.default cumulative_trapezoid.dx cumulative_trapezoid.x
    detach.default diagonal.default diff.default div.Scalar div.Scalar_mode div.Tensor div.Tensor_mode div_.Scalar
    div_.Scalar_mode div_.Tensor div_.Tensor_mode divide.Scalar divide.Scalar_mode divide.Tensor divide.Tensor_mode
    divide_.Scalar divide_.Scalar_mode divide_.Tensor divide_.Tensor_mode dot.default dropout.default dropout_.default
    dsplit.array dsplit.int dstack.default einsum.default elu.default elu_.default embedding.default
    embedding_dense_backward.default eq.Scalar eq.Tensor eq_.Scalar eq_.Tensor erf.default erf_.default erfc.default
    erfc_.default exp.default exp2.default exp2_.default exp_.default expand.default expand_as.default expm1.default
    expm1_.default eye.default eye.m fill.Scalar fill.Tensor fill_.Scalar fill_.Tensor flatten.using_ints flip.default
    float_power.Scalar float_power.Tensor_Scalar float_power.Tensor_Tensor floor.default floor_.default
    floor_divide.Scalar floor_divide.default floor_divide_.Scalar floor_divide_.Tensor fmax.default fmin.default
    fmod.Scalar fmod.Tensor fmod_.Scalar fmod_.Tensor full.default full_like.default gather.default ge.Scalar ge.Tensor
    ge_.Scalar ge_.Tensor gelu.default gelu_.default gelu_backward.default ger.default glu.default
    grid_sampler_2d.default group_norm.default gt.Scalar gt.Tensor gt_.Scalar gt_.Tensor hardsigmoid.default
    hardsigmoid_.default hardswish.default hardswish_.default hardtanh.default hardtanh_.default heaviside.default
    heaviside_.default hsplit.array hsplit.int hstack.default huber_loss.default hypot.default hypot_.default
    index.Tensor index_add.default index_add_.default index_copy.default index_copy_.default index_fill.int_Scalar
    index_fill.int_Tensor index_fill_.int_Scalar index_fill_.int_Tensor index_put.default index_put_.default
    index_select.default inner.default instance_norm.default isclose.default isfinite.default isinf.default
    isnan.default isneginf.default isposinf.default kl_div.default l1_loss.default layer_norm.default le.Scalar
    le.Tensor le_.Scalar le_.Tensor leaky_relu.default leaky_relu_.default lerp.Scalar lerp.Tensor lerp_.Scalar
    lerp_.Tensor lift_fresh_copy.default linalg_multi_dot.default linalg_norm.default linalg_norm.ord_str
    linalg_vecdot.default linalg_vector_norm.default linear.default linspace.default log.default log10.default
    log10_.default log1p.default log1p_.default log2.default log2_.default log_.default log_sigmoid.default
    log_sigmoid_forward.default log_softmax.int logaddexp.default logical_and.default logical_and_.default
    logical_not.default logical_not_.default logical_or.default logical_or_.default logical_xor.default
    logical_xor_.default logsumexp.default lt.Scalar lt.Tensor lt_.Scalar lt_.Tensor mH.default mT.default
    masked_fill.Scalar masked_fill.Tensor masked_fill_.Scalar masked_fill_.Tensor masked_scatter.default
    masked_scatter_.default matmul.default matrix_H.default max.default max.dim max.other max_pool1d.default
    max_pool2d.default max_pool2d_with_indices.default max_pool2d_with_indices_backward.default
    max_pool3d_with_indices.default maximum.default mean.default mean.dim min.default min.dim min.other minimum.default
    mish.default mish_.default mm.default moveaxis.int moveaxis.intlist movedim.int movedim.intlist mse_loss.default
    mul.Scalar mul.Tensor mul_.Scalar mul_.Tensor multiply.Scalar multiply.Tensor multiply_.Scalar multiply_.Tensor
    mv.default nan_to_num.default nan_to_num_.default nanmean.default nansum.default narrow.default
    native_batch_norm.default native_dropout.default native_group_norm.default native_group_norm_backward.default
    native_layer_norm.default native_layer_norm_backward.default ne.Scalar ne.Tensor ne_.Scalar ne_.Tensor neg.default
    neg_.default negative.default negative_.default new_full.default new_ones.default new_zeros.default nll_loss.default
    nll_loss_forward.default nonzero.default norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype
    norm.ScalarOpt_dtype numpy_T.default one_hot.default ones.default ones_like.default outer.default pad.default
    permute.default pixel_shuffle.default pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor pow_.Scalar pow_.Tensor
    prelu.default prod.default prod.dim_int rand.default rand_like.default randn.default randn_like.default
    randperm.default ravel.default reciprocal.default reciprocal_.default reflection_pad1d.default
    reflection_pad2d.default reflection_pad3d.default relu.default relu6.default relu6_.default relu_.default
    remainder.Scalar remainder.Scalar_Tensor remainder.Tensor remainder_.Scalar remainder_.Tensor repeat.default
    repeat_interleave.self_int replication_pad2d.default replication_pad3d.default reshape.default reshape_as.default
    rms_norm.default roll.default rot90.default round.decimals round.default round_.decimals round_.default
    row_stack.default rsqrt.default rsqrt_.default rsub.Scalar rsub.Tensor scalar_tensor.default
    scaled_dot_product_attention.default scatter.reduce scatter.src scatter.value scatter.value_reduce scatter_.reduce
    scatter_.src scatter_.value scatter_.value_reduce scatter_add.default scatter_add_.default scatter_reduce.two
    scatter_reduce_.two select.int select_backward.default select_scatter.default selu.default selu_.default sgn.default
    sgn_.default sigmoid.default sigmoid_.default sigmoid_backward.default sign.default sign_.default silu.default
    silu_.default silu_backward.default sin.default sin_.default sinh.default sinh_.default slice.Tensor
    slice_backward.default slice_scatter.default smooth_l1_loss.default softmax.int softplus.default sort.default
    sort.stable special_erf.default special_expit.default special_logsumexp.default split.Tensor split.sizes
    split_with_sizes.default sqrt.default sqrt_.default square.default square_.default squeeze.default squeeze.dim
    squeeze.dims stack.default std.correction std.default std.dim std_mean.correction std_mean.default std_mean.dim
    sub.Scalar sub.Tensor sub_.Scalar sub_.Tensor subtract.Scalar subtract.Tensor subtract_.Scalar subtract_.Tensor
    sum.default sum.dim_IntList swapaxes.default swapdims.default sym_numel.default sym_size.int t.default take.default
    take_along_dim.default tan.default tan_.default tanh.default tanh_.default tanh_backward.default
    tensor_split.indices tensor_split.sections tensordot.default threshold.default threshold_.default
    threshold_backward.default tile.default to.dtype to.dtype_layout to.other topk.default trace.default transpose.int
    trapezoid.dx trapezoid.x trapz.dx trapz.x tril.default tril_.default triu.default triu_.default true_divide.Scalar
    true_divide.Tensor true_divide_.Scalar true_divide_.Tensor trunc.default trunc_.default type_as.default unbind.int
    unflatten.int unfold.default unsafe_split.Tensor unsqueeze.default upsample_bilinear2d.default
    upsample_bilinear2d.vec upsample_nearest2d.default upsample_nearest2d.vec var.correction var.default var.dim
    var_mean.correction var_mean.default var_mean.dim vdot.default view.default view_as.default vsplit.array vsplit.int
    vstack.default where.Scalar where.ScalarOther where.ScalarSelf where.self xlogy.Scalar_Other xlogy.Scalar_Self
    xlogy.Tensor xlogy_.Scalar_Other xlogy_.Tensor zero.default zero_.default zeros.default zeros_like.default
"""

ATEN: tuple[str, ...] = tuple(_NAMES.split())
