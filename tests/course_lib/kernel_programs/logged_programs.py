"""Kernels whose accesses are known, in Triton's interpreter: run by `test_access_log.py` alone."""

import sys

import pytest
import torch
import triton
import triton.language as tl

from course_lib.errors import KernelError
from course_lib.kernel_programs import AccessLog, LiveBlocks, try_launcher


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at * stride, mask=at < n), mask=at < n)


@triton.jit
def total_kernel(x_ptr, out_ptr, n, FILLED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    unread = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, unread, mask=at < n)
    x = tl.load(x_ptr + at, mask=at < n, other=0) if FILLED else tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + n, tl.sum(x, axis=0))


@triton.jit
def unmasked_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at))


@triton.jit
def sum_kernel(x_ptr, out_ptr, atomic: tl.constexpr):
    value = tl.load(x_ptr + tl.program_id(0))
    if atomic:
        tl.atomic_add(out_ptr, value)
    else:
        tl.store(out_ptr, tl.load(out_ptr) + value)


@triton.jit
def cleared_sum_kernel(x_ptr, out_ptr):
    if tl.program_id(0) == 0:
        tl.store(out_ptr, 0.0)
    tl.atomic_add(out_ptr, tl.load(x_ptr + tl.program_id(0)))


@triton.jit
def shifted_kernel(x_ptr, by: tl.constexpr):
    at = tl.program_id(0) * 2 + tl.arange(0, 2)
    tl.store(x_ptr + at, tl.load(x_ptr + at + by))


@triton.jit
def numbered_kernel(out_ptr):
    tl.store(out_ptr + tl.arange(0, 2), tl.zeros([2], tl.float32) + tl.program_id(0))


@triton.jit
def locked_sum_kernel(x_ptr, out_ptr, lock_ptr, GIVEN_BACK: tl.constexpr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1 and GIVEN_BACK:
        pass
    tl.store(out_ptr, tl.load(out_ptr) + tl.load(x_ptr + tl.program_id(0)))
    if GIVEN_BACK:
        tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def pairs_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    pairs = tl.load(x_ptr.to(tl.pointer_type(tl.int64), bitcast=True) + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, BLOCK), pairs.to(tl.int32))


@triton.jit
def kept_kernel(x_ptr, out_ptr, COUNT: tl.constexpr, KEPT: tl.constexpr, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    blocks = ()
    for i in tl.static_range(COUNT):
        x = tl.load(x_ptr + i * BLOCK + tl.arange(0, BLOCK))
        total += x
        if KEPT:
            blocks = (*blocks, x)
    tl.store(out_ptr + tl.arange(0, BLOCK), total)


@triton.jit
def first_program_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    own = (at < n) & (tl.program_id(0) == 0)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=own, other=0), mask=own)


def live(count: int, kept: bool) -> int:
    x, out = torch.ones(count * 64), torch.empty(64)
    with AccessLog(x=x, out=out), LiveBlocks() as found:
        kept_kernel[(2,)](x, out, count, kept, BLOCK=64)
    assert out.tolist() == [count] * 64
    return found.most


def test_blocks_that_are_kept_count_and_blocks_that_are_not_needed_any_more_do_not() -> None:
    assert live(40, False) == live(10, False) < 10 * 64
    assert live(40, True) - live(10, True) == 30 * 64


def test_two_elements_are_not_counted_as_one() -> None:
    x, out = torch.arange(8, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    with (
        pytest.raises(triton.runtime.errors.InterpreterError) as raised,
        AccessLog(x=x, out=out),
    ):
        pairs_kernel[(1,)](x, out, BLOCK=4)
    assert "a load of 8 bytes a lane, and an element of x has 4" in str(raised.value.__cause__)


def test_each_element_is_found_by_its_number_whatever_its_stride() -> None:
    x, out = torch.arange(20.0)[::2], torch.empty(10)
    with AccessLog(x=x, out=out) as log:
        copy_kernel[(2,)](x, out, 10, x.stride(0), BLOCK=8)
    assert torch.equal(out, x)
    assert [(a.program, a.action, a.tensor, a.elements.tolist()) for a in log.accesses] == [
        (0, "load", "x", list(range(8))),
        (0, "store", "out", list(range(8))),
        (1, "load", "x", [8, 9]),
        (1, "store", "out", [8, 9]),
    ]
    assert log.grids == [(2, 1, 1)]
    assert log.widest == 8
    assert {a.line for a in log.accesses} == {copy_kernel.fn.__code__.co_firstlineno + 3}
    assert (log.traffic("x").loads_per_element, log.traffic("out").stores_per_element) == (1, 1)
    assert not log.strays
    assert not log.conflicts()


def test_an_access_outside_of_all_tensors_is_said_and_not_carried_out() -> None:
    memory = torch.full((20,), 7.0)
    x, out = torch.arange(5.0), memory[:5]
    with AccessLog(x=x, out=out) as log:
        unmasked_kernel[(1,)](x, out, BLOCK=8)
    assert torch.equal(out, x)
    assert (memory[5:] == 7).all()
    assert [(s.action, s.count, s.nearest, s.beyond) for s in log.strays] == [
        ("load", 3, "x", 5),
        ("store", 3, "out", 5),
    ]


def test_what_is_read_between_the_elements_of_a_view_is_a_stray_and_gives_nan() -> None:
    x, out = torch.zeros(8)[::2], torch.zeros(4)
    with AccessLog(x=x, out=out) as log:
        copy_kernel[(1,)](x, out, 4, 1, BLOCK=4)  # a stride of 1, where it is 2
    assert log.strays[0].count == 2
    assert out.isnan().tolist() == [False, True, False, True]


def test_programs_that_share_an_element_are_found_although_the_sum_is_right_here() -> None:
    x, total = torch.ones(4), torch.zeros(1)
    with AccessLog(x=x, total=total) as log:
        sum_kernel[(4,)](x, total, atomic=False)
    assert total == 4
    (conflict,) = log.conflicts()
    assert (conflict.tensor, conflict.element, conflict.programs) == ("total", 0, (0, 1))
    with AccessLog(x=x, total=total) as log:
        sum_kernel[(4,)](x, total, atomic=True)
    assert log.traffic("total").atomics == 4


def test_atomic_additions_of_programs_are_no_conflict_and_their_order_is_open() -> None:
    x, total = torch.ones(4), torch.zeros(1)
    with AccessLog(x=x, total=total) as log:
        sum_kernel[(4,)](x, total, atomic=True)
    assert (log.conflicts(), log.traffic("total").atomics) == ([], 4)
    (open_order,) = log.reordered()
    assert (open_order.tensor, open_order.element, open_order.programs) == ("total", 0, (0, 1))
    with AccessLog(x=x, total=total) as log:
        sum_kernel[(4,)](x, total, atomic=False)
        sum_kernel[(1,)](x, total, atomic=True)
    assert (len(log.conflicts()), log.reordered()) == (1, [])  # an atomic operation of one program has no order


def test_a_store_and_an_atomic_operation_of_two_programs_are_a_conflict() -> None:
    with AccessLog(x=(x := torch.ones(3)), total=(total := torch.zeros(1))) as log:
        cleared_sum_kernel[(3,)](x, total)
    (conflict,) = log.conflicts()
    assert (conflict.tensor, conflict.programs, conflict.action) == ("total", (0, 1), "atomic")


def raced(kernel, grid, *args, **constants) -> tuple[AccessLog, torch.Tensor]:
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    with AccessLog(**{f"tensor {number}": tensor for number, tensor in enumerate(tensors)}) as log:
        log.races.spoil = True
        kernel[grid](*args, **constants)
    return log, tensors[-1]


def test_a_sum_that_programs_share_without_a_lock_is_spoilt_if_races_are() -> None:
    log, total = raced(sum_kernel, (3,), torch.ones(3), torch.zeros(1), atomic=False)
    assert total.isnan().all()
    assert [(race.action, race.element, race.programs) for race in log.races.found] == [
        ("load", 0, (0, 1)),
        ("load", 0, (1, 2)),
    ]
    log, total = raced(sum_kernel, (3,), torch.ones(3), torch.zeros(1), atomic=True)
    assert (total.item(), log.races.found) == (3, [])


def test_a_lock_orders_programs_and_an_atomic_operation_that_is_none_does_not() -> None:
    lock, total = torch.zeros(1, dtype=torch.int32), torch.zeros(1)
    log, _ = raced(locked_sum_kernel, (3,), torch.ones(3), total, lock, GIVEN_BACK=True)
    assert (total.item(), log.races.found, log.conflicts()) == (3, [], [])
    log, _ = raced(locked_sum_kernel, (3,), torch.ones(3), torch.zeros(1), lock, GIVEN_BACK=False)
    assert log.races.found[0].action == log.conflicts()[0].action == "load"


def test_a_program_that_writes_what_an_earlier_one_read_is_found_and_one_that_keeps_to_its_own_is_not() -> None:
    log, x = raced(shifted_kernel, (2,), torch.arange(6.0), by=2)
    assert x.isnan().tolist() == [False, False, True, True, False, False]
    assert [(race.action, race.programs) for race in log.races.found] == [("store", (0, 1))]
    log, x = raced(shifted_kernel, (2,), torch.arange(6.0), by=0)
    assert (x.tolist(), log.races.found) == ([0, 1, 2, 3, 4, 5], [])


def test_programs_that_store_to_one_element_are_in_conflict_and_no_value_is_spoilt() -> None:
    log, out = raced(numbered_kernel, (3,), torch.zeros(2))
    assert (out.tolist(), log.races.found) == ([2, 2], [])
    assert [(clash.programs, clash.action) for clash in log.conflicts()] == [((0, 1), "store")]


@triton.jit
def tail_kernel(x_ptr, out_ptr, n, FILLED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if FILLED:
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n, other=0))
    else:
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_what_a_mask_leaves_out_spoils_a_result_in_a_log_unless_other_says_what_it_is(dtype: torch.dtype) -> None:
    x, out = torch.ones(1, dtype=dtype), torch.zeros(4, dtype=dtype)
    with AccessLog(x=x, out=out):
        tail_kernel[(1,)](x, out, 1, False, BLOCK=4)
    assert out.isnan().tolist() == [False, False, True, False]
    assert (out[1], out[3]) == (torch.finfo(dtype).max, -torch.finfo(dtype).max)
    with AccessLog(x=x, out=out):
        tail_kernel[(1,)](x, out, 1, True, BLOCK=4)
    assert out.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64, torch.uint8])
def test_a_whole_number_that_a_mask_leaves_out_is_large_and_odd_in_a_log(dtype: torch.dtype) -> None:
    x, out = torch.ones(3, dtype=dtype), torch.zeros(4, dtype=dtype)
    with AccessLog(x=x, out=out):
        tail_kernel[(1,)](x, out, 3, False, BLOCK=4)
    assert out[:3].tolist() == [1, 1, 1]
    assert int(out[3]) % 2 == 1
    assert int(out[3]) >= torch.iinfo(dtype).max // 2


def test_a_map_says_in_words_what_it_shows() -> None:
    x, out = torch.zeros(2, 3), torch.zeros(6)
    with AccessLog(x=x, out=out) as log:
        copy_kernel[(2,)](x, out, 5, 1, BLOCK=4)
    drawn = log.map("x")
    assert str(drawn) == (
        "x, loaded: row 0: elements 0 to 2 by program 0; row 1: element 0 by program 0, element 1 by program 1, "
        "element 2 by none."
    )
    assert str(drawn) in drawn._repr_svg_()
    assert str(drawn) in drawn._repr_html_()
    assert drawn._repr_svg_().count("<rect") == 1 + 6
    assert ">x: load, by program<" in drawn._repr_svg_()


def test_a_log_ends_with_its_block_and_takes_no_other_inside() -> None:
    x, out = torch.ones(4), torch.zeros(4)
    with AccessLog(x=x, out=out) as log, pytest.raises(KernelError, match="Another log is open"), AccessLog():
        pass
    copy_kernel[(1,)](x, out, 4, 1, BLOCK=4)
    assert log.accesses == []


def test_a_part_of_a_tensor_takes_its_accesses_over():
    x, out = torch.arange(8.0), torch.zeros(2, 4)
    with AccessLog(x=x, out=out) as log:
        copy_kernel[(2,)](x, out, 8, 1, BLOCK=4)
        copy_kernel[(1,)](out, x, 2, 4, BLOCK=4)
    log.split("out", "second row", out[1])
    assert (log.traffic("second row").stored, log.traffic("second row").loads) == (4, 1)
    assert (log.traffic("out").stored, log.traffic("out").loads) == (4, 1)
    last = [access for access in log.accesses if access.tensor == "second row"][-1]
    assert (last.action, last.elements.tolist()) == ("load", [0])


if __name__ == "__main__":
    sys.exit(pytest.main(["-p", "no:xdist", __file__]))


def copied(x, *, masked: bool):
    out = torch.empty(x.shape[0], dtype=x.dtype)
    if masked:
        copy_kernel[(2,)](x, out, x.shape[0], x.stride(0), BLOCK=8)
    else:
        unmasked_kernel[(2,)](x, out, BLOCK=8)
    return out


def test_a_launcher_is_tried_with_the_tensors_that_it_makes() -> None:
    x = torch.arange(20.0)[::2]
    assert torch.equal(try_launcher(copied, x, masked=True), x)


def test_a_stray_store_into_a_new_tensor_is_told_and_not_carried_out() -> None:
    with pytest.raises(KernelError, match=r"Program 1, line 32 of the cell: a load of 6 elements outside"):
        try_launcher(copied, torch.arange(10.0), masked=False)
    memory = torch.full((16,), 99.0)

    def into_part() -> torch.Tensor:
        unmasked_kernel[(2,)](torch.ones(16), memory[:10], BLOCK=8)
        return memory

    with pytest.raises(KernelError, match="store of 6 elements"):
        try_launcher(into_part)
    assert memory.tolist() == [1.0] * 10 + [99.0] * 6


def test_a_launcher_whose_programs_race_is_told_which_ones() -> None:
    with pytest.raises(KernelError, match=r"Program 1 reads element 0 of argument 2, and program 0 of the same launch"):
        try_launcher(lambda x, out: sum_kernel[(3,)](x, out, atomic=False), torch.ones(3), torch.zeros(1))


@triton.jit
def largest_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.max(tl.load(x_ptr + at, mask=at < n), axis=0))


def test_a_maximum_does_not_pass_over_lanes_without_a_value() -> None:
    def largest(x):
        out = torch.empty(1)
        largest_kernel[(1,)](x, out, 3, BLOCK=4)
        return out

    with pytest.raises(KernelError, match=r"`tl.load` .*; give `other=`"):
        try_launcher(largest, torch.ones(3))


@triton.jit
def squares_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.exp(x * x), mask=at < n)


@pytest.mark.filterwarnings("error")
def test_what_stands_in_lanes_that_are_never_stored_says_nothing_of_an_overflow() -> None:
    x, out = torch.zeros(3), torch.empty(3)
    with AccessLog(x=x, out=out):
        squares_kernel[(1,)](x, out, 3, BLOCK=8)
    assert out.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_a_result_that_depends_on_lanes_without_a_value_names_the_load_and_no_other(dtype) -> None:
    def totalled(x, *, filled):
        out = torch.empty(9, dtype=dtype)  # its last two places stay as they are
        total_kernel[(1,)](x, out, 6, FILLED=filled, BLOCK=8)
        return out

    x = torch.arange(6, dtype=dtype)
    with pytest.raises(KernelError, match=r"in line 25 of the cell: `tl.load` .*; give `other=`"):
        try_launcher(totalled, x, filled=False)
    assert try_launcher(totalled, x, filled=True)[:7].tolist() == [0, 1, 2, 3, 4, 5, 15]


def test_a_mask_that_a_number_restricts_counts_the_elements_that_it_lets_through() -> None:
    x, out = torch.arange(6.0), torch.full((6,), 99.0)
    with AccessLog(x=x, out=out) as log:
        first_program_kernel[(3,)](x, out, 6, BLOCK=8)
    assert torch.equal(out, x)
    assert (log.traffic("x").loads, log.traffic("x").loaded, log.traffic("out").stored) == (6, 6, 6)
    assert log.strays == []
