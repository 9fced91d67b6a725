"""Answers compile outside of Triton's interpreter, and their launchers see no values of tensors there either."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.host.artifacts.kernel_writing import written
from tests.autograder.exercises.judged import reference

SCRIPT = Path(__file__).with_name("timed_answers.py")
FRESH = Path(__file__).parents[2] / "course_lib" / "kernels" / "fresh_triton.py"
LAUNCHERS = {
    "12_masked_blend": "blend",
    "12_bias_quick_gelu": "bias_quick_gelu",
    "12_long_softmax": "long_softmax",
    "12_layer_norm": "layer_norm",
    "12_block_end_forward": "add_norm",
}
BLEND = "12_masked_blend"
NO_KERNEL = """
def blend(x, y, t):
    return x + t * (y - x)
"""
NO_TENSOR = """
import torch


def blend(x, y, t):
    return torch.empty_like(x), 3
"""
HELPER = """
import torch
import triton
import triton.language as tl

BLOCK = tl.constexpr(1024)


@triton.jit
def doubled(block):
    return block + block


@triton.jit
def kernel(x_ptr, n, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, doubled(tl.load(x_ptr + at, mask=at < n, other=0.0)), mask=at < n)


def blend(x, y, t):
    out = torch.zeros_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, x.numel(), out, BLOCK=BLOCK, num_warps=8)
    return out
"""
OPEN_GLOBAL = HELPER.replace("return block + block", "return block + SIZE").replace(
    "BLOCK = tl", "SIZE = 3\nBLOCK = tl"
)


def told(answers: list[tuple[str, str, str]]) -> list[list[str]]:
    """Return the lines of the script in groups, one for each answer, of which the host's text runs."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, str(FRESH), str(SCRIPT)]
    environment["PYTHONPATH"] = str(Path(__file__).parents[3])
    of_host = [(*names, written(ast.parse(text).body)) for *names, text in answers]
    done = subprocess.run(
        command, input=json.dumps(of_host), capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    _, *groups = done.stdout.split("exercise ")
    return [group.splitlines() for group in groups]


def test_the_reference_answers_compile_and_return_what_is_timed():
    groups = told([(name, launcher, reference(name)) for name, launcher in LAUNCHERS.items()])
    for group in groups:
        assert group[-1] == "returned as expected", group
        launches = [line.split() for line in group if line.startswith("launch ")]
        assert launches, group
        assert all("Tensor" in launch and "Operand" not in launch for launch in launches)
    assert [group[0] for group in groups] == list(LAUNCHERS)


@pytest.fixture(scope="module")
def groups() -> dict[str, list[str]]:
    texts = {"no kernel": NO_KERNEL, "no tensor": NO_TENSOR, "helper": HELPER, "open global": OPEN_GLOBAL}
    return dict(zip(texts, told([(BLEND, "blend", text) for text in texts.values()]), strict=True))


def test_a_launcher_cannot_compute_with_tensors_of_the_timed_size(groups):
    assert groups["no kernel"][1].startswith("failed LauncherError The launcher computes with a tensor.")


def test_a_launcher_that_returns_something_else_is_told_what_it_returned(groups):
    (failed,) = groups["no tensor"][1:]
    assert failed == "failed LauncherError The launcher returned 2 things, one of them a int; expected tensors."


def test_a_global_constant_a_helper_kernel_and_options_of_a_launch_work(groups):
    launch, returned = groups["helper"][1:]
    assert launch.startswith("launch kernel (16384,)")
    assert returned == "returned as expected"


def test_what_only_the_interpreter_accepts_fails_with_the_compilers_words(groups):
    (failed,) = groups["open global"][1:]
    assert failed.startswith("failed LauncherError Triton does not compile `kernel`: ")
    assert "Cannot access global variable SIZE" in failed
