"""Predict the least time of a program on a device: it is limited by memory traffic or by arithmetic."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from course_lib.errors import GraphError
from course_lib.graph.cost import Cost

TERA = 1e12


@dataclass(frozen=True)
class Device:
    """Hold the speeds that a device reaches in practice, for the two limits of a roofline."""

    name: str
    bandwidth_bytes_per_s: float  # bytes read and written together
    flops_per_s: Mapping[torch.dtype, float]  # of matrix products in this dtype

    def __post_init__(self) -> None:
        if not all(number > 0 for number in (self.bandwidth_bytes_per_s, *self.flops_per_s.values())):
            raise GraphError(
                f"Device {self.name!r} has a speed that is not above zero; give bytes and FLOP per second."
            )


@dataclass(frozen=True)
class Roofline:
    """Hold the least time that a program can take on a device."""

    memory_us: float  # to move its bytes
    arithmetic_us: float  # for its floating-point operations

    @property
    def time_us(self) -> float:
        """Return the longer of the two times, since a device does both at once."""
        return max(self.memory_us, self.arithmetic_us)

    @property
    def bound(self) -> str:
        """Return what limits the program, "memory" or "arithmetic"."""
        return "memory" if self.memory_us >= self.arithmetic_us else "arithmetic"


def named_devices() -> Mapping[str, Device]:
    """Return devices by name, with speeds that good kernels reach there.

        >>> sorted(named_devices())
        ['A100', 'H200', 'T4']

    Sources. H200: 4.3 TB/s and 790 TFLOP/s in 16 bit are planning figures, 0.9 and 0.8 of NVIDIA's 4.8 TB/s and 989
    TFLOP/s; 54 TFLOP/s in float32 is a guess, 0.8 of 67. A100 (80 GB, SXM): 1.67 TB/s is what Liger-Kernel's
    published LayerNorm times give, 0.82 of NVIDIA's 2,039 GB/s; 250 and 15.6 TFLOP/s are guesses, 0.8 of 312 and
    19.5. T4: guesses throughout, 0.8 of 320 GB/s, 0.5 of 65 TFLOP/s in float16 (it is throttled at 70 W, and has no
    units for bfloat16), 0.8 of 8.1 TFLOP/s in float32. Products in float32 are strict, without TF32.
    """
    half, brain, single = torch.float16, torch.bfloat16, torch.float32
    devices = (
        Device("H200", 4.3 * TERA, {half: 790 * TERA, brain: 790 * TERA, single: 54 * TERA}),
        Device("A100", 1.67 * TERA, {half: 250 * TERA, brain: 250 * TERA, single: 15.6 * TERA}),
        Device("T4", 0.26 * TERA, {half: 32 * TERA, single: 6.5 * TERA}),
    )
    return {device.name: device for device in devices}


def predict(cost: Cost, device: Device, dtype: torch.dtype) -> Roofline:
    """Return the least time that a program of this cost can take.

        >>> moved = Cost(launches=2, bytes_read=3_000_000, bytes_written=1_300_000)
        >>> predict(moved, named_devices()["H200"], torch.float32)
        Roofline(memory_us=1.0, arithmetic_us=0.0)

    Nothing is added for launches. Raises `GraphError` if the program does arithmetic in a dtype for which the device
    has no speed.
    """
    speed = device.flops_per_s.get(dtype)
    if cost.flops and speed is None:
        known = ", ".join(str(each).removeprefix("torch.") for each in device.flops_per_s)
        raise GraphError(f"{device.name} has no speed for {str(dtype).removeprefix('torch.')}; it has one for {known}.")
    arithmetic_us = cost.flops / speed * 1e6 if speed else 0.0
    return Roofline(cost.bytes_moved / device.bandwidth_bytes_per_s * 1e6, arithmetic_us)


def predict_launches(cost: Cost, device: Device, dtype: torch.dtype) -> float:
    """Return the least time in µs that the launches of a program can take one after the other.

        >>> counted = Cost(2, 4_000_000, 4_600_000, by_launch=((4_300_000, 0), (4_300_000, 7_900_000_000)))
        >>> predict_launches(counted, named_devices()["H200"], torch.float16)
        11.0

    `predict` overlaps the memory traffic of one launch with the arithmetic of another; this function does not. Each
    launch takes the longer of its own two times. Raises `GraphError` as `predict` does.
    """
    each = (Cost(1, moved, 0, flops=flops) for moved, flops in cost.by_launch)
    return sum(predict(launch, device, dtype).time_us for launch in each)


def measure_device(
    name: str = "this machine",
    *,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    copy_bytes: int = 1 << 27,
    matrix_size: int = 1024,
    repeats: int = 5,
) -> Device:
    """Measure a device: the bandwidth of a copy, and the arithmetic speed of a product of square matrices.

    The best of `repeats` runs counts. Choose `copy_bytes` well above the cache sizes, and a matrix size of 8192 on
    CUDA. The number of threads is that of `torch.set_num_threads`.
    """
    source = torch.ones(copy_bytes, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    matrix = torch.randn(matrix_size, matrix_size, dtype=dtype, device=device)  # ones would cost a GPU less power
    product = torch.empty_like(matrix)
    copy_s = _best_s(lambda: target.copy_(source), device, repeats)
    product_s = _best_s(lambda: torch.mm(matrix, matrix, out=product), device, repeats)
    return Device(name, 2 * copy_bytes / copy_s, {dtype: 2 * matrix_size**3 / product_s})


def _best_s(run: Callable[[], object], device: str, repeats: int) -> float:
    times = []
    for _ in range(repeats + 1):  # the first one warms up
        _wait(device)
        start = time.perf_counter()
        run()
        _wait(device)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def _wait(device: str) -> None:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
