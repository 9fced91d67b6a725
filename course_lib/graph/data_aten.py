"""The overloads of ATen that a graph written as data may call: core ATen, and what captures leave beside it.

Core ATen is the set that PyTorch tags `torch.Tag.core`. Writes in place stand beside it where they keep a tensor's
shape and storage. Missing: what returns uninitialised memory (`empty`), and what reaches past a tensor's own elements
(`as_strided`, `resize_`, storage offsets).
"""

_NAMES = """
    _adaptive_avg_pool2d.default _adaptive_avg_pool2d_backward.default _adaptive_avg_pool3d.default
    _cdist_forward.default _embedding_bag.default _fft_c2r.default _fft_r2c.default _log_softmax.default
    _native_batch_norm_legit.default _native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training.default
    _pdist_forward.default _softmax.default _softmax_backward_data.default _to_copy.default _unsafe_view.default
    abs.default abs_.default acos.default acosh.default adaptive_avg_pool1d.default add.Scalar add.Tensor
    add_.Scalar add_.Tensor addcmul.default addmm.default alias.default amax.default amin.default any.default
    any.dim any.dims arange.default arange.start arange.start_step argmax.default argmin.default argsort.default
    asin.default asinh.default atan.default atan2.default atanh.default avg_pool1d.default avg_pool2d.default
    avg_pool2d_backward.default avg_pool3d.default bitwise_and.Scalar bitwise_and.Tensor bitwise_not.default
    bitwise_or.Scalar bitwise_or.Tensor bitwise_xor.Scalar bitwise_xor.Tensor bmm.default broadcast_to.default
    cat.default ceil.default celu.default chunk.default clamp.Tensor clamp.default clamp_.default clamp_max.default
    clamp_max_.default clamp_min.default clamp_min_.default clone.default col2im.default constant_pad_nd.default
    contiguous.default convolution.default convolution_backward.default copy.default copy_.default cos.default
    cos_.default cosh.default cumprod.default cumsum.default detach.default diagonal.default diff.default div.Scalar
    div.Scalar_mode div.Tensor div.Tensor_mode div_.Scalar div_.Tensor dot.default dropout.default einsum.default
    elu.default embedding.default embedding_dense_backward.default eq.Scalar eq.Tensor erf.default erfc.default
    exp.default exp_.default expand.default expand_as.default expm1.default eye.default fill.Scalar fill_.Scalar
    fill_.Tensor flatten.using_ints flip.default floor.default floor_divide.Scalar floor_divide.default fmod.Scalar
    fmod.Tensor full.default full_like.default gather.default ge.Scalar ge.Tensor gelu.default gelu_backward.default
    grid_sampler_2d.default gt.Scalar gt.Tensor hardsigmoid.default hardswish.default hardtanh.default index.Tensor
    index_put.default index_select.default isinf.default isnan.default layer_norm.default le.Scalar le.Tensor
    leaky_relu.default lerp.Scalar lerp.Tensor lift_fresh_copy.default linalg_vector_norm.default linear.default
    linspace.default log.default log10.default log1p.default log2.default log_softmax.int logaddexp.default
    logical_and.default logical_not.default logical_or.default logical_xor.default logsumexp.default lt.Scalar
    lt.Tensor masked_fill.Scalar masked_fill.Tensor masked_fill_.Scalar masked_fill_.Tensor masked_scatter.default
    matmul.default max.default max.dim max.other max_pool2d_with_indices.default
    max_pool2d_with_indices_backward.default max_pool3d_with_indices.default maximum.default mean.default mean.dim
    min.default min.dim min.other minimum.default mish.default mm.default movedim.int mse_loss.default mul.Scalar
    mul.Tensor mul_.Scalar mul_.Tensor mv.default narrow.default native_dropout.default native_group_norm.default
    native_group_norm_backward.default native_layer_norm.default native_layer_norm_backward.default ne.Scalar
    ne.Tensor neg.default neg_.default negative.default new_full.default new_ones.default new_zeros.default
    nonzero.default norm.ScalarOpt_dim numpy_T.default ones.default ones_like.default outer.default pad.default
    permute.default pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor prod.default prod.dim_int rand.default randn.default
    randperm.default reciprocal.default reflection_pad1d.default reflection_pad2d.default reflection_pad3d.default
    relu.default relu_.default remainder.Scalar remainder.Tensor repeat.default replication_pad2d.default
    replication_pad3d.default reshape.default rms_norm.default roll.default round.default rsqrt.default rsub.Scalar
    scalar_tensor.default scaled_dot_product_attention.default scatter.src scatter.value scatter_add.default
    scatter_reduce.two select.int select_backward.default select_scatter.default selu.default sigmoid.default
    sigmoid_.default sigmoid_backward.default sign.default silu.default silu_backward.default sin.default
    sin_.default sinh.default slice.Tensor slice_backward.default slice_scatter.default softmax.int softplus.default
    sort.default split.Tensor split_with_sizes.default sqrt.default sqrt_.default square.default squeeze.default
    squeeze.dim squeeze.dims stack.default std.correction std.dim sub.Scalar sub.Tensor sub_.Scalar sub_.Tensor
    sum.default sum.dim_IntList sym_numel.default sym_size.int t.default tan.default tanh.default tanh_.default
    tanh_backward.default threshold_backward.default to.dtype topk.default transpose.int tril.default triu.default
    trunc.default type_as.default unbind.int unflatten.int unsafe_split.Tensor unsqueeze.default
    upsample_bilinear2d.vec upsample_nearest2d.vec var.correction var.dim var_mean.correction view.default
    view_as.default where.Scalar where.ScalarOther where.ScalarSelf where.self zero_.default zeros.default
    zeros_like.default
"""

ATEN: tuple[str, ...] = tuple(_NAMES.split())
