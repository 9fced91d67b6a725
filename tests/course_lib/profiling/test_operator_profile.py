"""Operators, memory and timeline of programs that are known."""

import json
import os
import subprocess
import sys

import pytest
import torch

from course_lib.errors import ProfilingError
from course_lib.profiling import profile_operators
from course_lib.profiling.operator_profile import MemoryUse, OperatorProfile, _uses, memory_from_events
from course_lib.show import format_bytes
from tests.architecture.source_tree import ROOT
from tests.simulated_gpu import KERNEL_US, profiled_on_cuda

MIB = 1 << 20


def program(x: torch.Tensor) -> torch.Tensor:
    """Hold three times the bytes of `x` at the height, and return one."""
    y = x.exp()
    z = y.sin()
    w = z.cos()
    del y, z
    return w


def test_operators_are_counted_for_one_run():
    profile = profile_operators(program, torch.zeros(1000), runs=4)
    uses = {use.name: use for use in profile.operators}

    assert [uses[name].calls for name in ("aten::exp", "aten::sin", "aten::cos")] == [1.0, 1.0, 1.0]
    assert all(0 <= use.self_cpu_us <= use.total_cpu_us for use in profile.operators)
    assert [use.self_cpu_us for use in profile.operators] == sorted(
        (use.self_cpu_us for use in profile.operators), reverse=True
    )


@pytest.mark.parametrize("runs", [1, 3])
def test_memory_is_what_the_program_holds_at_its_height(runs):
    memory = profile_operators(program, torch.zeros(MIB // 4), runs=runs).memory

    assert memory == MemoryUse(peak_bytes=3 * MIB, left_bytes=0, allocated_bytes=3 * MIB, allocations=3)


def test_memory_that_a_program_keeps_is_left_at_the_end():
    kept = []

    assert profile_operators(lambda: kept.append(torch.ones(MIB // 4)), runs=1).memory.left_bytes == MIB


def test_releases_of_older_memory_lower_the_level_and_not_the_height():
    events = [{"Bytes": size, "Device Type": 0} for size in (-100, 50, 30, -30)]

    assert memory_from_events(events) == MemoryUse(0, -50, 80, 2)


def test_on_cuda_only_the_memory_of_the_device_counts():
    events = [{"Bytes": 10, "Device Type": 0}, {"Bytes": 7, "Device Type": 1}]

    assert memory_from_events(events, on_cuda=True).peak_bytes == 7
    assert memory_from_events(events).peak_bytes == 10


def test_the_timeline_is_written_as_often_as_wanted_and_names_the_operators(tmp_path):
    profile = profile_operators(program, torch.zeros(10, 100), shapes=True, runs=1)
    first, second = (profile.write_trace(tmp_path / name) for name in ("a.json", "b.json"))
    events = {event.get("name"): event for event in json.loads(first.read_text("utf-8"))["traceEvents"]}

    assert first.read_bytes() == second.read_bytes()
    assert events["aten::exp"]["args"]["Input Dims"] == [[10, 100]]


def test_the_table_shows_the_largest_first_and_says_what_it_leaves_out():
    profile = profile_operators(program, torch.zeros(1000))
    lines = profile.table(order="name", limit=2).splitlines()

    assert lines[0].split()[:2] == ["operator", "calls"]
    assert [line.split()[0] for line in lines[2:4]] == sorted(use.name for use in profile.operators)[:2]
    assert lines[4] == f"… and {len(profile.operators) - 2} more"
    assert "<table>" in profile._repr_html_()
    assert "at its height" in str(profile)


def test_the_profiler_writes_nothing_to_stderr_and_leaves_the_environment_alone():
    code = (
        "import os, torch; from course_lib.profiling import profile_operators; before = dict(os.environ);"
        "profile_operators(torch.ones, 3); assert dict(os.environ) == before"
    )
    environment = {name: value for name, value in os.environ.items() if name != "KINETO_LOG_LEVEL"}
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )

    assert (answer.returncode, answer.stderr) == (0, "")


def test_what_the_program_raises_comes_through():
    with pytest.raises(RuntimeError, match="size"):
        profile_operators(torch.add, torch.zeros(2), torch.zeros(3))


@pytest.mark.parametrize(
    ("arguments", "options", "named"),
    [
        ((3,), {}, "got a int; it expects a callable"),
        ((torch.ones, 3), {"runs": 0}, "runs=0"),
        ((torch.ones, 3), {"warmup_runs": -1}, "warmup_runs=-1"),
    ],
)
def test_what_cannot_be_profiled_is_refused(arguments, options, named):
    with pytest.raises(ProfilingError, match=named):
        profile_operators(*arguments, **options)


def test_an_unknown_order_is_refused():
    with pytest.raises(ProfilingError, match="order='speed'; it knows 'self_cpu_us'"):
        profile_operators(torch.ones, 3).table(order="speed")


@pytest.mark.parametrize(
    ("size", "text"), [(1023, "1023 B"), (1024, "1 KiB"), (5 * MIB, "5 MiB"), (1.5 * 2**30, "1.5 GiB")]
)
def test_bytes_are_shown_in_the_unit_in_which_they_read_best(size, text):
    assert format_bytes(size) == text


def test_the_time_of_a_kernel_counts_once_and_a_range_is_listed_once():
    averages = profiled_on_cuda().key_averages()
    assert sum(event.self_device_time_total for event in averages if event.key.startswith(("aten", "tanh"))) == 200

    operators, kernels = _uses(averages, 1)
    profile = OperatorProfile(operators, memory_from_events([]), 1, "", kernels)
    assert sorted((use.name, use.self_device_us, use.is_range) for use in operators) == [
        ("aten::tanh", KERNEL_US, False),
        ("part", 0, True),
    ]
    assert profile.kernels_us == KERNEL_US
