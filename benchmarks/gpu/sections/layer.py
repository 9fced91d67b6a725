"""Measure a whole BERT layer: fused by this library, eager, by torch.compile, and as a peer computes it.

The ideal time is computed, not measured. Each launch takes the longer of two times: its bytes at the speed of a copy,
or its arithmetic at the speed of a large matrix product. The ideal ratio is eager's ideal time over the fused layer's;
the target is 80 % of it. The ratio of bytes alone is reported too.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._functorch.config
import torch.nn.functional as F
from torch import nn

from benchmarks import kernel_times
from benchmarks.gpu.section import Notes, Run, Section
from benchmarks.kernel_cases import Program, bias_dropout_add, gelu_by_hand
from course_lib.capture import capture
from course_lib.fusion import PASSES, fuse
from course_lib.graph import Cost, cost
from course_lib.graph.roofline import Device, measure_device, predict_launches
from course_lib.models import TransformerConfig, TransformerLayer
from course_lib.models.transformer import SelfAttention
from course_lib.timing import time_callable

TARGET = 0.80  # of the ideal ratio
PROGRAMS = ("eager", "compile", "peer", "kernel")
MODES = ("evaluation", "training")  # forward; forward and backward


@dataclasses.dataclass(frozen=True)
class Plan:
    """Hold the sizes to measure and the time to spend."""

    config: TransformerConfig
    batch: int
    sequence: int
    dtype: torch.dtype
    copy_bytes: int
    matrix_size: int
    sample_s: float


def plan_of(around: Run) -> Plan:
    """Return BERT-base at a batch that fills a large GPU, or a tiny layer for a dry run."""
    if around.dry:
        return Plan(TransformerConfig(32, 2, 64), 2, 16, torch.float32, 2**20, 64, 0.005)
    config = TransformerConfig(768, 12, 3072)
    return Plan(config, 64, 512, torch.bfloat16, kernel_times.COPY_BYTES, 8192, 0.4)


def run(around: Run) -> None:
    """Measure the four ways in both modes; note each as soon as it is known."""
    torch._functorch.config.donated_buffer = False  # the backward pass may run again on the same saved tensors
    plan, compiler = plan_of(around), (kernel_times.dry_plan() if around.dry else kernel_times.cuda_plan()).compiler
    machine = measure_device(
        device=around.device, dtype=plan.dtype, copy_bytes=plan.copy_bytes, matrix_size=plan.matrix_size
    )
    around.note("device", around.device)
    around.note("copy_gb_per_s", machine.bandwidth_bytes_per_s / 1e9)
    around.note("product_tflop_per_s", machine.flops_per_s[plan.dtype] / 1e12)
    dtype = str(plan.dtype).removeprefix("torch.")
    around.note("shape", f"{plan.batch} × {plan.sequence} × {plan.config.hidden_size} {dtype}")
    around.note("measured", [])
    around.note("left_out", [])
    for mode in MODES:
        layer = build_layer(plan.config, around.device, plan.dtype, training=mode == "training")
        x = torch.randn(plan.batch, plan.sequence, plan.config.hidden_size, device=around.device, dtype=plan.dtype)
        for name, make in programs(layer, x, compiler):
            if around.left_s < 5:
                _add(around, "left_out", f"{name}, {mode}: no time was left")
                continue
            try:
                _add(around, "measured", _measured(name, make(), mode, x, around, plan, machine))
            except Exception as error:  # one way that fails must not stop the others
                said = (str(error).splitlines() or [""])[0]
                _add(around, "left_out", f"{name}, {mode}: {type(error).__name__}: {said}")


def _add(around: Run, key: str, value: object) -> None:
    around.note(key, [*around.notes[key], value])


def _measured(
    name: str, program: Any, mode: str, x: torch.Tensor, around: Run, plan: Plan, machine: Device
) -> dict[str, Any]:
    call = step_of(program, mode, x)
    counted = counted_cost(name, call)
    timing = time_callable(call, device=around.device, warmup_s=plan.sample_s / 5, budget_s=plan.sample_s)
    found = {"program": name, "mode": mode, "median_us": timing.median_us, "spread_us": timing.spread_us}
    found |= {"samples": len(timing.times_us), "notes": list(timing.notes)}
    if counted is not None:
        found |= {"launches": counted.launches, "bytes_moved": counted.bytes_moved, "flops": counted.flops}
        found["ideal_us"] = predict_launches(counted, machine, plan.dtype)
    return found


def step_of(program: Any, mode: str, x: torch.Tensor) -> Callable[[], object]:
    """Return one forward run, or one forward and backward run with all gradients."""
    if mode == "evaluation":
        return torch.no_grad()(lambda: program(x))
    given, grad = x.clone().requires_grad_(), torch.randn_like(x)
    parameters = [given, *program.parameters()]
    return lambda: torch.autograd.grad(program(given), parameters, grad, allow_unused=True)


def counted_cost(name: str, call: Callable[[], object]) -> Cost | None:
    """Return what one run costs; None for programs whose compiled kernels cannot be seen one by one."""
    return None if name in ("compile", "peer") else cost(call, ())


def ratios(notes: Notes, mode: str) -> dict[str, float]:
    """Return the ratios of eager to kernel: measured, ideal, and of bytes; empty if one of them is missing."""
    by_program = {one["program"]: one for one in notes.get("measured", []) if one["mode"] == mode}
    if not {"eager", "kernel"} <= by_program.keys():
        return {}
    keys = {"measured": "median_us", "ideal": "ideal_us", "bytes": "bytes_moved"}
    return {name: by_program["eager"][key] / by_program["kernel"][key] for name, key in keys.items()}


def missed(notes: Notes) -> list[str]:
    """Return a sentence for each mode in which the fused layer is slower than it should be; the target is for CUDA."""
    if notes.get("device") != "cuda":
        return []
    found = []
    for mode in MODES:
        ratio = ratios(notes, mode)
        if not ratio:
            found.append(f"layer, {mode}: not measured")
        elif ratio["measured"] < TARGET * ratio["ideal"]:
            reached = ratio["measured"] / ratio["ideal"]
            found.append(f"layer, {mode}: {ratio['measured']:.2f} times as fast, {reached:.0%} of the ideal ratio")
    return found


def as_markdown(notes: Notes) -> str:
    """Return a row for each mode, a column for each program."""
    lines = [f"| {notes['shape']} | {' | '.join(f'{name} µs' for name in PROGRAMS)} | eager ÷ kernel | ideal | bytes |"]
    lines.append(f"|{'---|' * (len(PROGRAMS) + 4)}")
    for mode in MODES:
        times = {one["program"]: f"{one['median_us']:.0f}" for one in notes["measured"] if one["mode"] == mode}
        ratio = ratios(notes, mode)
        of_ideal = [f"{ratio[key]:.2f}" if ratio else "–" for key in ("measured", "ideal", "bytes")]
        lines.append(f"| {mode} | {' | '.join([*(times.get(name, '–') for name in PROGRAMS), *of_ideal])} |")
    speeds = f"Copy {notes['copy_gb_per_s']:.0f} GB/s, matrix product {notes['product_tflop_per_s']:.2f} TFLOP/s."
    dry = [] if notes["device"] == "cuda" else ["", "A dry run: nothing here says anything about a GPU."]
    return "\n".join([*lines, "", speeds, *dry, "", *(f"- left out: {line}" for line in notes["left_out"])])


SECTION = Section("A whole BERT layer", order=15, budget_s=60, run=run, as_markdown=as_markdown, missed=missed)


Layer = Callable[[torch.Tensor], torch.Tensor]


def build_layer(config: TransformerConfig, device: str, dtype: torch.dtype, *, training: bool) -> TransformerLayer:
    """Return the layer that all programs share, with the same weights each time."""
    torch.manual_seed(0)
    return TransformerLayer(config).to(device, dtype).train(training)


def programs(
    layer: TransformerLayer, x: torch.Tensor, compiler: Callable[[Program], Program]
) -> Iterator[tuple[str, Callable[[], Layer]]]:
    """Yield the name of each way, and how to make it; `compiler` is `torch.compile` or a substitute."""
    yield "eager", lambda: layer
    yield "compile", lambda: compiler(layer)
    yield "peer", lambda: PeerLayer(layer, compiler)
    yield "kernel", lambda: fused(layer, x)


def fused(layer: TransformerLayer, x: torch.Tensor) -> nn.Module:
    """Return the layer after all passes that run by default, and the one for attention."""
    names = [name for name, cls in PASSES.items() if cls.by_default or name == "sdpa"]
    captured = capture(layer, concrete_args={"mask": None})
    return fuse(captured, (x,), names).graph_module.train(layer.training)


class PeerLayer(nn.Module):
    """Compute the layer as Megatron-LM does, with the weights of `layer`; GELU by the tanh formula, as there."""

    def __init__(self, layer: TransformerLayer, compiler: Callable[[Program], Program]) -> None:
        super().__init__()
        self.layer = layer
        self._gelu, self._add = gelu_by_hand(compiler), compiler(bias_dropout_add)
        self.train(layer.training)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the new hidden states: (batch, sequence, hidden) in and out."""
        layer, feed_forward = self.layer, self.layer.feed_forward
        context = self._project(layer.projection.dense, _attention(layer.attention, hidden), hidden)
        hidden = layer.attention_norm(context)
        dense = feed_forward.dense
        inner = F.linear(hidden, dense.weight).flatten(0, 1)  # (batch · sequence, intermediate), as the formula sums
        inner = self._gelu(inner, dense.bias).view(*hidden.shape[:2], -1)
        result: torch.Tensor = layer.feed_forward_norm(self._project(feed_forward.projection.dense, inner, hidden))
        return result

    def _project(self, dense: nn.Linear, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        p = self.layer.projection.dropout.p if self.training else 0.0
        return self._add(F.linear(x, dense.weight), dense.bias, residual, p)


def _attention(attention: SelfAttention, hidden: torch.Tensor) -> torch.Tensor:
    query, key, value = (
        part(hidden).unflatten(-1, (attention.num_heads, attention.head_size)).transpose(1, 2)
        for part in (attention.query, attention.key, attention.value)
    )  # each (batch, heads, sequence, head size)
    p = attention.dropout.p if attention.training else 0.0
    return F.scaled_dot_product_attention(query, key, value, dropout_p=p).transpose(1, 2).flatten(2)
