"""Schedules from the first step to the last, as one writes them: for our layer, and for Hugging Face's BERT.

Both models go through the same steps, with a table of where the parts are: bias + GELU, and what follows each
projection (bias, dropout, residual, LayerNorm), in all layers, forward and backward, in training and in evaluation.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import fx, nn

from course_lib.models import TransformerConfig, TransformerLayer
from course_lib.schedule import Schedule, call_module, create_schedule, verify
from tests.course_lib.schedule.models import TOKENS, after_projection, bias_gelu, huggingface_bert, our_encoder

Tensor = torch.Tensor


def our_layer() -> TransformerLayer:
    torch.manual_seed(0)
    return TransformerLayer(TransformerConfig(16, 2, 32, 1, 50, 16, dropout=0.3))


@dataclass(frozen=True)
class Places:
    """Where the parts of a model are."""

    build: Callable[[], nn.Module]
    inputs: tuple[Tensor, ...]
    gelus: tuple[tuple[str, str], ...]  # the part to trace, the linear layer in it
    projections: tuple[tuple[str, tuple[str, ...]], ...]  # the part to trace, the linear layers in it
    kept_whole: tuple[str, ...] = ()  # what stays one node while the projections are traced
    activation: str | None = None  # the name of the module that computes GELU, where a module does


HIDDEN = torch.randn(2, 7, 16, generator=torch.Generator().manual_seed(2))
LAYERS = tuple(f"bert.encoder.layer.{number}" for number in range(2))
MODELS = {
    "our layer": Places(
        our_layer,
        (HIDDEN,),
        (("feed_forward", "dense"),),
        (("", ("projection.dense", "feed_forward.projection.dense")),),
        ("attention",),
    ),
    "our encoder": Places(
        our_encoder,
        (TOKENS,),
        tuple((f"layers.{number}.feed_forward", "dense") for number in range(2)),
        tuple((f"layers.{n}", ("projection.dense", "feed_forward.projection.dense")) for n in range(2)),
        ("attention",),
    ),
    "Hugging Face": Places(
        huggingface_bert,
        (TOKENS,),
        tuple((f"{layer}.intermediate", "dense") for layer in LAYERS),
        tuple((f"{layer}.{part}", ("dense",)) for layer in LAYERS for part in ("attention.output", "output")),
        activation=r"intermediate_.*",
    ),
}


def part_of(schedule: Schedule, path: str) -> Schedule:
    return schedule[path] if path else schedule


def fuse_gelus(schedule: Schedule, places: Places, compiler: str) -> None:
    for path, linear in places.gelus:
        part = part_of(schedule, path)
        part[linear].decompose()
        part.trace(flatten=True)
        part.fuse(part.find(bias_gelu), compiler=compiler, name="bias_gelu")


def fuse_projections(schedule: Schedule, places: Places, compiler: str) -> None:
    for path, linears in places.projections:
        part = part_of(schedule, path)
        for linear in linears:
            part[linear].decompose()
        part.trace(flatten=True, leaf_modules=places.kept_whole)
        found = part.find(after_projection)
        assert len(found) == len(linears), found
        part.fuse(found, compiler=compiler, name="after_projection")


def fused(model: nn.Module, name: str) -> int:
    return sum(path.rpartition(".")[2].startswith(name) for path, _ in model.named_modules())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("compiler", ["eager", "torchscript"])
def test_bias_and_gelu_are_fused_in_every_layer(name: str, compiler: str) -> None:
    places = MODELS[name]
    schedule = create_schedule(places.build())
    fuse_gelus(schedule, places, compiler)
    assert fused(schedule.build(), "bias_gelu") == len(places.gelus)
    report = verify(schedule, places.inputs)
    assert report.passed, report


@pytest.mark.parametrize("name", MODELS)
def test_what_follows_each_projection_is_fused_in_every_layer_also_for_training(name: str) -> None:
    places = MODELS[name]
    model = places.build()
    schedule = create_schedule(model)
    fuse_projections(schedule, places, "torchscript")
    assert fused(schedule.build(), "after_projection") == sum(len(linears) for _, linears in places.projections)
    report = verify(schedule, places.inputs)
    assert report.passed, report
    assert {finding.where.partition(",")[0] for finding in report.findings} >= {"train", "eval"}


@pytest.mark.parametrize("name", MODELS)
def test_a_few_steps_of_training_give_the_same_weights(name: str) -> None:
    places = MODELS[name]
    model = places.build()
    schedule = create_schedule(copy.deepcopy(model))
    fuse_projections(schedule, places, "eager")
    trained = []
    for one in (model.train(), schedule.build().train()):
        torch.manual_seed(5)
        optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            result = one(*places.inputs)
            getattr(result, "logits", result).square().mean().backward()
            optimizer.step()
        trained.append(dict(one.named_parameters()))
    before = dict(places.build().named_parameters())
    assert trained[0].keys() == trained[1].keys()
    assert any(not torch.equal(value, before[key]) for key, value in trained[0].items())
    for key, value in trained[0].items():
        torch.testing.assert_close(trained[1][key], value)


def test_by_name_and_by_operator_the_same_nodes_are_found() -> None:
    places = MODELS["Hugging Face"]
    part = create_schedule(places.build())["bert.encoder.layer.1.intermediate"]
    part["dense"].decompose()
    part.trace(flatten=True)
    by_name = part.find(lambda x, bias: call_module(str(places.activation), x + bias))
    by_operator = part.find(bias_gelu)
    assert len(by_name) == 1
    assert by_name[0].nodes == by_operator[0].nodes
    assert len(part.find(lambda x, bias: call_module(r"output_.*", x + bias))) == 0


def test_everything_around_a_traced_part_stays_a_module() -> None:
    for name, places in MODELS.items():
        schedule = create_schedule(places.build())
        path, linear = places.gelus[0]
        part_of(schedule, path)[linear].decompose()
        part_of(schedule, path).trace(flatten=True)
        traced = [at for at, module in schedule.build().named_modules() if isinstance(module, fx.GraphModule)]
        assert traced == [path], name


def test_a_linear_layer_without_the_bias_that_the_graph_wants_is_seen_by_verify() -> None:
    for path, model in (("layers.0.feed_forward", our_encoder()), (f"{LAYERS[0]}.intermediate", huggingface_bert())):
        schedule = create_schedule(model)
        schedule[path]["dense"].decompose()
        schedule[path].trace(flatten=True)
        schedule[path]["dense"].replace(nn.Linear(16, 32, bias=False))
        assert "lost" in str(schedule.history)
        report = verify(schedule, (TOKENS,), modes=("eval",))
        assert not report.passed
        assert "bias" in str(report)


def test_the_whole_of_a_schedule_reads_as_its_history_and_runs_without_it() -> None:
    places = MODELS["our encoder"]
    model = places.build()
    schedule = create_schedule(model)
    fuse_gelus(schedule, places, "eager")
    schedule["layers.1"].checkpoint()
    assert [step.action for step in schedule.history] == [*(["decompose", "trace", "fuse"] * 2), "checkpoint"]
    built = schedule.build().eval()
    del schedule
    torch.testing.assert_close(built(TOKENS), model.eval()(TOKENS))


def test_a_report_without_failures_is_a_few_lines_and_one_with_failures_names_each() -> None:
    schedule = create_schedule(our_layer())
    good = verify(schedule, (HIDDEN,))
    assert len(str(good).splitlines()) <= 8
    assert f"{len(good.findings)} comparisons, 0 failed" in str(good)
    schedule["feed_forward.dense"].replace(nn.Linear(16, 32))
    bad = verify(schedule, (HIDDEN,), modes=("eval",))
    assert len(str(bad).splitlines()) == 1 + len(bad.failures)
    assert "output 0" in str(bad)
