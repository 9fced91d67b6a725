"""What is said about the machine."""

import dataclasses
import json

import pytest
import torch

from course_lib.timing import environment
from course_lib.timing.environment import Gpu, parse_gpu

H200 = "NVIDIA H200, 570.12, 1200, 1980, 41, 120.5"
QUIET = Gpu("NVIDIA H200", "570.12", 1980.0, 1980.0, 41.0, 120.5, ())


def test_this_machine_is_described_and_written_as_json():
    seen = environment()

    assert seen.cores >= 1
    assert seen.threads == torch.get_num_threads()
    assert torch.__version__ in (seen.torch, f"{seen.torch}+cu{(torch.version.cuda or '').replace('.', '')}")
    assert "torch threads" in str(seen)
    json.dumps(seen.to_json())


def test_what_nvidia_smi_prints_is_read():
    gpu = parse_gpu(H200, "100\n200\n", own_process=100)

    assert gpu == Gpu("NVIDIA H200", "570.12", 1200.0, 1980.0, 41.0, 120.5, (200,))


@pytest.mark.parametrize("line", ["NVIDIA T4", "NVIDIA T4, [N/A], [N/A], [N/A], [N/A], [N/A]"])
def test_what_nvidia_smi_does_not_know_is_none(line):
    gpu = parse_gpu(line, "", own_process=1)

    assert (gpu.name, gpu.clock_mhz, gpu.max_clock_mhz, gpu.other_processes) == ("NVIDIA T4", None, None, ())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, ()),
        ({"clock_mhz": 1500.0}, ()),
        ({"clock_mhz": 1400.0}, ("NVIDIA H200 runs at 1400 MHz of 1980",)),
        ({"max_clock_mhz": None, "clock_mhz": 100.0}, ()),
        ({"other_processes": (7, 8)}, ("2 other processes compute on NVIDIA H200",)),
    ],
)
def test_a_low_clock_and_other_processes_are_problems(change, told):
    seen = dataclasses.replace(environment(), gpu=dataclasses.replace(QUIET, **change))

    assert seen.problems == told
    assert "NVIDIA H200: driver 570.12" in str(seen)


def test_a_machine_without_a_gpu_has_no_problem():
    assert dataclasses.replace(environment(), gpu=None, load_average=99.0).problems == ()
