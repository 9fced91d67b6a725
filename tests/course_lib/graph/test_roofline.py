"""Predictions are those computed by hand, and a device can be measured."""

import pytest
import torch

from course_lib.errors import GraphError
from course_lib.graph import Cost, cost
from course_lib.graph.roofline import (
    Device,
    Roofline,
    measure_device,
    named_devices,
    predict,
    predict_launches,
)

TOY = Device("toy", 1e9, {torch.float32: 2e9})  # 1,000 bytes and 2,000 FLOP a microsecond


def test_a_program_without_arithmetic_is_bound_by_memory() -> None:
    found = predict(Cost(1, 3000, 1000), TOY, torch.float32)
    assert found == Roofline(memory_us=4.0, arithmetic_us=0.0)
    assert (found.time_us, found.bound) == (4.0, "memory")


def test_a_large_product_is_bound_by_arithmetic() -> None:
    square = torch.ones(100, 100)
    found = predict(cost(torch.mm, (square, square)), TOY, torch.float32)
    assert (found.memory_us, found.arithmetic_us) == pytest.approx((2 * 40, 2_000_000 / 2000))  # one operand, read once
    assert (found.time_us, found.bound) == (found.arithmetic_us, "arithmetic")


def test_a_dtype_that_the_device_has_no_speed_for_is_refused_only_if_there_is_arithmetic() -> None:
    assert predict(Cost(1, 1000, 0), TOY, torch.bfloat16).time_us == 1.0
    with pytest.raises(GraphError, match="T4 has no speed for bfloat16; it has one for float16, float32"):
        predict(Cost(1, 0, 0, flops=1), named_devices()["T4"], torch.bfloat16)


@pytest.mark.parametrize("bandwidth", [0, -1, float("nan")])
def test_a_device_without_speed_is_refused(bandwidth: float) -> None:
    with pytest.raises(GraphError, match="above zero"):
        Device("none", bandwidth, {})


def test_a_machine_measures_itself() -> None:
    here = measure_device("here", copy_bytes=1 << 22, matrix_size=128, repeats=2)
    assert here.name == "here"
    assert 1e7 < here.bandwidth_bytes_per_s < 1e13
    assert 1e7 < here.flops_per_s[torch.float32] < 1e15


def test_launches_one_after_the_other_each_take_as_long_as_their_own_limit():
    x = torch.zeros(64, 64)
    counted = cost(lambda x: torch.relu(x @ x), (x,))
    product, activation = counted.by_launch
    assert sum(moved for moved, _ in counted.by_launch) == counted.bytes_moved
    assert (product[1], activation[1]) == (counted.flops, 0)
    slow = Device("slow arithmetic", 1e9, {torch.float32: 1e6})
    expected = product[1] / 1e6 * 1e6 + activation[0] / 1e9 * 1e6
    assert predict_launches(counted, slow, torch.float32) == pytest.approx(expected)
    assert predict(counted, slow, torch.float32).time_us == pytest.approx(product[1])
