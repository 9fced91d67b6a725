"""Random programs of everything that the toy machine takes compute the same when they are compiled for it."""

import random
from collections.abc import Callable

import torch

from course_lib.backends import Prices, lower
from course_lib.backends.toy import ToyTarget
from course_lib.capture import capture
from course_lib.machine import Machine
from tests.drawn import some

FREE = Prices(launch_us=1e-3, handover_us=0, bandwidth_gb_s=1e9)
SHAPES = ((2, 3, 4), (2, 3, 4), (3, 4), (4,), (2, 1, 4), (6, 4), (1, 4), ())
PROGRAMS, TRIED = 80, 20  # others in each run
STEPS = 14


def elementwise(draw: random.Random, values: list[torch.Tensor]) -> torch.Tensor:
    a = draw.choice(values)
    fitting = [value for value in values if _broadcast(a, value)]
    b = draw.choice([*fitting, 0.5, 2])
    return draw.choice(
        [
            lambda: a + b,
            lambda: a * b,
            lambda: a - b,
            lambda: 1 - a,
            lambda: torch.tanh(a),
            lambda: torch.relu(a),
            lambda: torch.sigmoid(a) * b,
            lambda: torch.where(a > b, a, 0.1),
            lambda: torch.maximum(a, b) if isinstance(b, torch.Tensor) else a.clamp_min(b),
            lambda: torch.nn.functional.gelu(a) + b,
        ]
    )()


def reduction(draw: random.Random, values: list[torch.Tensor]) -> torch.Tensor:
    a = draw.choice(values)
    dims = draw.sample(range(a.dim()), draw.randint(1, a.dim())) if a.dim() else []
    if not dims:
        return torch.tanh(a)
    keep = draw.random() < 0.6
    return draw.choice([lambda: a.sum(dims, keep) / 4, lambda: a.amax(dims, keep), lambda: a.mean(dims, keep)])()


def view(draw: random.Random, values: list[torch.Tensor]) -> torch.Tensor:
    a = draw.choice(values)
    dim = draw.randrange(a.dim()) if a.dim() else 0
    choices = [lambda: a.unsqueeze(draw.randint(0, a.dim())), lambda: a.detach(), lambda: a.reshape(-1)]
    if a.dim():
        choices += [
            lambda: a.select(dim, 0),
            lambda: a.narrow(dim, 0, max(1, a.shape[dim] - 1)),
            lambda: a.squeeze(dim),
        ]
        choices += [
            lambda: a.transpose(dim, 0),
            lambda: a.transpose(dim, -1).contiguous(),
            lambda: a.expand(2, *a.shape),
        ]
        choices += [lambda: a.unflatten(0, (1, -1))]
        if a.shape[0] == 6:
            choices += [lambda: a.unflatten(0, (2, 3))] * 6
    return draw.choice(choices)()


def product(draw: random.Random, values: list[torch.Tensor]) -> torch.Tensor:
    a = draw.choice([value for value in values if value.dim() in (2, 3)])
    others = [value for value in values if value.dim() == a.dim() and value.shape[:-2] == a.shape[:-2]]
    b = draw.choice([value for value in others if value.shape[-1] == a.shape[-1]])
    result = (a @ b.transpose(-1, -2)) / 4
    return result.flatten(0, 1).unflatten(0, (a.shape[0], -1)) if a.dim() == 3 else result


def program_of(seed: int) -> Callable[..., tuple[torch.Tensor, ...]]:
    def program(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        draw = random.Random(seed)
        values = list(inputs)
        for _ in range(STEPS):
            step = draw.choices([elementwise, reduction, view, product], (6, 2, 4, 2))[0]
            made = step(draw, values[-6:] if draw.random() < 0.7 and step is not product else values)
            if made.dim() <= 5 and made.numel() <= 500:
                values.append(made)
        return tuple(values[len(inputs) + STEPS // 2 :]) or (values[0] + 1,)

    return program


def walked(tensor: torch.Tensor) -> list[int]:
    """Return the strides along which there is a second element."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]


def _broadcast(a: torch.Tensor, b: torch.Tensor) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a.shape[::-1], b.shape[::-1], strict=False))


def test_random_programs_compute_what_they_did():
    launched = 0
    for seed in some(range(PROGRAMS), TRIED, name="programs for the toy machine"):
        generator = torch.Generator().manual_seed(seed)
        inputs = tuple(torch.randn(shape, generator=generator, dtype=torch.float64) for shape in SHAPES)
        program, machine = program_of(seed), Machine(random.Random(seed).choice((4, 5, 8)))
        gm = capture(program, inputs, mode="make_fx").graph_module
        actual = lower(gm, inputs, ToyTarget(machine), prices=FREE)(*inputs)
        for ours, eager in zip(actual, program(*inputs), strict=True):
            torch.testing.assert_close(ours, eager, rtol=1e-12, atol=1e-12, msg=lambda text: f"program {seed}: {text}")  # noqa: B023
            assert walked(ours) == walked(eager), seed
        launched += machine.counts.launches
    assert launched > 40
