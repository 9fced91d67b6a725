"""Programs are traced and run, by several threads in turn, as a class is graded."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

from autograder.host.compute_lock import compute_lock
from autograder.host.draw import Draw
from autograder.host.traced import Program, TensorSpec, draw_inputs, traced


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.SiLU()) for _ in range(20)])

    def forward(self, x):
        return self.layers(x)


PROGRAM = Program("`Deep`", Deep, (TensorSpec((4, 8)),), fused=0)


def trace_and_run(seed: int) -> bool:
    with compute_lock.held():
        return traced_and_run(seed)


def traced_and_run(seed: int) -> bool:
    draw = Draw(seed, "threads")
    program = traced(PROGRAM, draw)
    inputs = draw_inputs(PROGRAM.inputs, draw)
    exact = program.reference(*[i.double() for i in inputs])
    error = (program.reference(*inputs).double() - exact).abs().max() / exact.abs().max()
    return bool(error < 1e-3) and program.mutated(inputs) == ()


def test_threads_do_not_disturb_each_others_traces():
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(trace_and_run, range(64)))


def test_parameters_are_fresh_for_each_grading():
    first, second = (traced(PROGRAM, Draw(seed, "x")).tensors for seed in (1, 2))
    assert first.keys() == second.keys()
    assert not any(torch.equal(first[p], second[p]) for p in first)


def test_a_frozen_parameter_keeps_its_value():
    def build():
        norm = nn.LayerNorm(8)
        return nn.Sequential(norm.requires_grad_(False), nn.LayerNorm(8))

    tensors = traced(Program("`frozen`", build, (TensorSpec((4, 8)),), fused=0), Draw(1, "x")).tensors
    assert [torch.equal(tensors[f"{i}.weight"], torch.ones(8)) for i in (0, 1)] == [True, False]


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x):
        return self.seen.add_(1) * x


def test_what_a_program_writes_to_its_own_buffers_is_forgotten():
    program = Program("`Counting`", Counting, (TensorSpec((3,)),), fused=0, buffers=True)
    counting = traced(program, Draw(1, "x"))

    for dtype in (torch.float32, torch.float64, torch.float32):
        assert counting.reference(torch.ones(3, dtype=dtype)).equal(torch.ones(3, dtype=dtype))
    assert counting.mutated((torch.ones(3),)) == ()
    assert counting.tensors["seen"].equal(torch.zeros(3))


def test_a_program_that_writes_to_its_input_is_seen_to():
    program = traced(Program("`add_`", lambda: lambda x: x.add_(1), (TensorSpec((3,)),), fused=0), Draw(1, "x"))
    assert program.mutated((torch.zeros(3),)) == (0,)
