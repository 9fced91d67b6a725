"""What stands in lanes that nobody has written spoils results in each floating-point dtype."""

import numpy as np
import pytest
import torch
import triton.language as tl
from triton.runtime.interpreter import _get_np_dtype

from course_lib.kernel_programs.unfilled import undefined

DTYPES = {
    tl.float16: torch.float16,
    tl.float32: torch.float32,
    tl.float64: torch.float64,
    tl.bfloat16: torch.bfloat16,
    tl.float8e5: torch.float8_e5m2,
    tl.float8e4nv: torch.float8_e4m3fn,
    tl.float8e5b16: torch.float8_e5m2fnuz,
    tl.float8e4b8: torch.float8_e4m3fnuz,
}


@pytest.mark.parametrize("element", DTYPES, ids=str)
def test_the_largest_number_nan_and_the_lowest_number_stand_in_turn(element: tl.dtype) -> None:
    dtype = DTYPES[element]
    limit = torch.finfo(dtype).max
    bits = undefined(_get_np_dtype(element), element)
    found = torch.from_numpy(bits.view(f"i{bits.itemsize}")).view(dtype).double()
    assert torch.equal(found.nan_to_num(0), torch.tensor([limit, 0, -limit], dtype=torch.float64))
    assert found.isnan().tolist() == [False, True, False]


def test_a_dtype_without_nan_has_its_largest_and_its_lowest_number() -> None:
    bits = undefined(np.dtype(np.uint8), tl.float8e4b15)
    assert bits.tolist() == [0b0_1111_111, 0b1_1111_111]


def test_integers_are_large_and_odd_though_they_have_the_same_bits() -> None:
    assert undefined(np.dtype(np.uint8), tl.uint8).tolist() == [127]
