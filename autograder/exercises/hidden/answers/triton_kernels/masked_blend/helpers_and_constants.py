import triton
import triton.language as tl

BLOCK = tl.constexpr(128)
SIZE = 128


@triton.jit
def lanes(n):
    at = BLOCK * tl.program_id(axis=0) + tl.arange(0, BLOCK)
    return at, at < n


@triton.jit
def mixed(x, y, t):
    return tl.fma(y - x, t, x)


@triton.jit
def blend_kernel(out_ptr, x_ptr, y_ptr, n, x_stride, y_stride, t):
    at, inside = lanes(n)
    x = tl.load(x_ptr + x_stride * at, inside, 0.0)
    y = tl.load(y_ptr + y_stride * at, inside, 0.0)
    tl.store(out_ptr + at, mixed(x, y, t), inside)


def blend(x, y, t):
    assert x.shape == y.shape, f"{x.shape} and {y.shape}"
    out = x.new_empty(len(x))
    if len(x) == 0:
        return out
    blend_kernel[lambda meta: (triton.cdiv(x.shape[0], SIZE),)](out, x, y, x.shape[0], x.stride(0), y.stride(0), t)
    return out
