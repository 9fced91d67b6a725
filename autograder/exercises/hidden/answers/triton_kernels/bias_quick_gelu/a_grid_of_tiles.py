SCALE: tl.constexpr = 1.702


@triton.jit
def quick_gelu(z):
    return z * tl.sigmoid(z * SCALE)


@triton.jit
def bias_kernel(
    x_ptr,
    bias_ptr,
    out_ptr,
    M,
    N,
    stride_xm,
    stride_xn,
    stride_b,
    stride_om,
    stride_on,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn
    bias = tl.load(bias_ptr + offs_n * stride_b, mask=offs_n < N, other=0.0)
    x = tl.load(x_ptrs, mask=mask, other=0.0)
    acc = x.to(tl.float32) + tl.expand_dims(bias.to(tl.float32), 0)
    acc = quick_gelu(acc)
    tl.store(out_ptr + offs_m[:, None] * stride_om + offs_n[None, :] * stride_on, acc.to(x.dtype), mask=mask)


def bias_quick_gelu(x: torch.Tensor, bias: torch.Tensor):
    assert x.ndim == 2 and bias.ndim == 1 and x.shape[1] == bias.shape[0], "shapes"
    M, N = x.shape
    out = x.new_empty((M, N))
    BLOCK_M, BLOCK_N = 32, 32
    grid = lambda META: (triton.cdiv(M, META["BLOCK_M"]), triton.cdiv(N, META["BLOCK_N"]))
    bias_kernel[grid](x, bias, out, M, N, *x.stride(), bias.stride(0), *out.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return out
