"""The overloads of ATen that a graph written as data may call: core ATen, and what captures leave beside it.

Core ATen is the set that PyTorch tags `torch.Tag.core`. Missing from it here: what returns uninitialised memory
(`empty`), and what reaches past a tensor's own elements (`as_strided`, `resize_`, storage offsets).
"""

_NAMES = """
    _adaptive_avg_pool2d.default _adaptive_avg_pool2d_backward.default _adaptive_avg_pool3d.default
    _cdist_forward.default _embedding_bag.default _fft_c2r.default _fft_r2c.default _log_softmax.default
    _native_batch_norm_legit.default _native_batch_norm_legit.no_stats
    _native_batch_norm_legit_no_training.default _pdist_forward.default _softmax.default
    _softmax_backward_data.default _to_copy.default _unsafe_view.default abs.default acos.default acosh.default
    adaptive_avg_pool1d.default add.Scalar add.Tensor add_.Tensor addmm.default alias.default amax.default
    amin.default any.default any.dim any.dims arange.start_step argmax.default argmin.default asin.default
    asinh.default atan.default atan2.default atanh.default avg_pool1d.default avg_pool2d.default
    avg_pool2d_backward.default avg_pool3d.default bitwise_and.Scalar bitwise_and.Tensor bitwise_not.default
    bitwise_or.Scalar bitwise_or.Tensor bitwise_xor.Scalar bitwise_xor.Tensor bmm.default cat.default ceil.default
    chunk.default clamp.Tensor clamp.default clone.default col2im.default constant_pad_nd.default
    contiguous.default convolution.default convolution_backward.default copy.default cos.default cosh.default
    cumsum.default detach.default diagonal.default div.Scalar div.Scalar_mode div.Tensor div.Tensor_mode
    dropout.default elu.default embedding.default embedding_dense_backward.default eq.Scalar eq.Tensor erf.default
    exp.default expand.default expand_as.default expm1.default fill.Scalar flip.default floor.default fmod.Scalar
    fmod.Tensor full.default full_like.default gather.default ge.Scalar ge.Tensor gelu.default
    gelu_backward.default grid_sampler_2d.default gt.Scalar gt.Tensor hardtanh.default index.Tensor
    index_put.default index_select.default isinf.default isnan.default layer_norm.default le.Scalar le.Tensor
    leaky_relu.default linear.default log.default log10.default log1p.default log2.default logical_and.default
    logical_not.default logical_or.default logical_xor.default lt.Scalar lt.Tensor masked_fill.Scalar
    masked_fill.Tensor masked_scatter.default matmul.default max.dim max_pool2d_with_indices.default
    max_pool2d_with_indices_backward.default max_pool3d_with_indices.default maximum.default mean.default mean.dim
    min.dim minimum.default mm.default mse_loss.default mul.Scalar mul.Tensor mul_.Tensor native_dropout.default
    native_group_norm.default native_group_norm_backward.default native_layer_norm.default
    native_layer_norm_backward.default ne.Scalar ne.Tensor neg.default nonzero.default ones.default
    ones_like.default permute.default pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor prod.default prod.dim_int
    rand.default randn.default randperm.default reciprocal.default reflection_pad1d.default
    reflection_pad2d.default reflection_pad3d.default relu.default relu_.default remainder.Scalar remainder.Tensor
    repeat.default replication_pad2d.default replication_pad3d.default reshape.default round.default rsqrt.default
    rsub.Scalar scalar_tensor.default scaled_dot_product_attention.default scatter.src scatter.value
    scatter_add.default scatter_reduce.two select.int select_scatter.default sigmoid.default
    sigmoid_backward.default sign.default silu.default silu_backward.default sin.default sinh.default slice.Tensor
    slice_scatter.default softmax.int sort.default split.Tensor split_with_sizes.default sqrt.default squeeze.dim
    squeeze.dims stack.default sub.Scalar sub.Tensor sum.default sum.dim_IntList sym_size.int t.default
    tan.default tanh.default tanh_backward.default threshold_backward.default topk.default transpose.int
    trunc.default unbind.int unsafe_split.Tensor unsqueeze.default upsample_bilinear2d.vec upsample_nearest2d.vec
    var.correction var.dim view.default view_as.default where.self zeros.default zeros_like.default
"""

ATEN: tuple[str, ...] = tuple(_NAMES.split())
