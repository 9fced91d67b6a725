"""The report on inference, for our models, for Hugging Face's and for a plain function."""

import itertools
import json
import re
from xml.etree import ElementTree

import pytest
import torch
from matplotlib import pyplot

from course_lib.errors import ProfilingError
from course_lib.models import TransformerConfig, TransformerEncoder
from course_lib.models.transformer import FeedForward
from course_lib.profiling import inference_report
from course_lib.profiling.inference_report import batch_size_of, resized
from course_lib.profiling.plots import picture, plot_lines

QUICK = {"max_samples": 5, "warmup_s": 0.0, "budget_s": 0.5}
CONFIG = TransformerConfig(hidden_size=16, num_heads=2, intermediate_size=32, num_layers=1, vocab_size=64)


@pytest.fixture(scope="module")
def report():
    torch.manual_seed(0)
    encoder = TransformerEncoder(CONFIG)
    return inference_report(encoder, [torch.zeros(2, 8, dtype=torch.long)], batch_sizes=(1, 4), **QUICK)


def test_every_batch_size_has_latency_throughput_memory_and_operations(report):
    one, four = report.batches

    assert (one.batch_size, four.batch_size) == (1, 4)
    assert one.flops * 4 == four.flops > 0
    assert one.peak_bytes < four.peak_bytes
    for batch in report.batches:
        assert len(batch.latency.times_us) == 5
        assert batch.latency.min_us <= batch.median_us <= batch.p90_us
        assert batch.throughput_per_s == pytest.approx(batch.batch_size * 1e6 / batch.median_us)
        assert batch.gflops_per_s == pytest.approx(batch.flops / batch.median_us / 1e3)


def test_parameters_are_counted(report):
    encoder = TransformerEncoder(CONFIG)

    assert report.parameters == sum(weight.numel() for weight in encoder.parameters())
    assert report.parameter_bytes == 4 * report.parameters
    assert report.model == "TransformerEncoder"


def test_the_report_is_text_and_plain_data_and_a_picture(report):
    text, data, plot = str(report), json.loads(json.dumps(report.to_json())), report.plot()

    assert "TransformerEncoder" in text
    assert "GFLOP/s" in text
    assert "most time in: aten::" in text
    assert len(data["batches"][0]["latency"]["times_us"]) == 5
    assert data["batches"][1]["throughput_per_s"] == report.batches[1].throughput_per_s
    assert data["environment"]["cores"] >= 1
    assert ElementTree.fromstring(plot.svg).tag.endswith("svg")
    assert "throughput, items a second" in str(plot)


def test_a_model_is_left_as_it_was_also_when_it_fails():
    class Failing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Dropout().eval()
            self.outer = torch.nn.Dropout()

        def forward(self, x):
            assert not self.outer.training
            assert not torch.is_grad_enabled()
            raise ArithmeticError("as planned")

    model = Failing()
    with pytest.raises(ArithmeticError):
        inference_report(model, [torch.zeros(1)], **QUICK)

    assert (model.training, model.inner.training, model.outer.training) == (True, False, True)
    assert torch.is_grad_enabled()


def test_a_plain_function_has_a_report():
    def double(x):
        return 2 * x

    report = inference_report(double, (torch.ones(3, 5),), **QUICK)

    assert (report.model, report.parameters, report.batches[0].batch_size) == ("double", 0, 3)
    assert report.batches[0].flops == 0


def test_a_hugging_face_model_takes_its_inputs_by_name():
    import transformers

    config = transformers.BertConfig(
        hidden_size=16, num_attention_heads=2, intermediate_size=32, num_hidden_layers=1, vocab_size=64
    )
    inputs = {"input_ids": torch.zeros(2, 8, dtype=torch.long), "attention_mask": torch.ones(2, 8)}
    report = inference_report(transformers.BertModel(config), inputs, batch_sizes=(3,), **QUICK)

    assert report.model == "BertModel"
    assert report.batches[0].batch_size == 3
    assert report.batches[0].flops > 0


def test_only_tensors_of_the_batch_change_size():
    weight, mask = torch.zeros(7), torch.arange(2)
    inputs = {"x": torch.arange(6).view(2, 3), "mask": mask, "weight": weight, "scale": torch.tensor(2.0), "flag": True}
    grown = resized(inputs, 5)

    assert grown["x"].shape == (5, 3)
    assert grown["mask"].tolist() == [0, 1, 0, 1, 0]
    assert grown["weight"] is weight
    assert grown["scale"] is inputs["scale"]
    assert grown["flag"] is True
    assert resized(inputs, 1)["x"].tolist() == [[0, 1, 2]]
    assert resized(inputs, 2) is inputs


@pytest.mark.parametrize("inputs", [[], [3], [torch.tensor(1.0)], {"x": "text"}, [torch.zeros(0, 3)]])
def test_inputs_without_a_batch_are_refused(inputs):
    with pytest.raises(ProfilingError, match="first dimension, which is the batch"):
        inference_report(torch.nn.Identity(), inputs)


def test_a_tensor_in_place_of_a_list_of_inputs_is_refused():
    with pytest.raises(ProfilingError, match=r"got a Tensor as inputs; it expects a list of arguments, such as \[x\]"):
        batch_size_of(torch.zeros(3))


def test_a_model_that_cannot_be_called_is_refused():
    with pytest.raises(ProfilingError, match="got a str as model; it expects a module or a function"):
        inference_report("model", [torch.zeros(3)])


def test_a_batch_size_below_one_is_refused():
    with pytest.raises(ProfilingError, match=r"got batch_sizes=4; it expects several: \(4,\)"):
        inference_report(FeedForward(CONFIG), [torch.zeros(2, 16)], batch_sizes=4)
    with pytest.raises(ProfilingError, match="batch size of 0"):
        inference_report(FeedForward(CONFIG), [torch.zeros(2, 16)], batch_sizes=(0,))


def test_a_plot_bears_its_numbers_and_escapes_its_names():
    plot = plot_lines("n < 3", [1, 2], {"a & b": [0.0, 1234.5]})
    texts = [element.text for element in ElementTree.fromstring(plot.svg).iter() if element.text]

    assert {"n < 3", "a & b", "0", "1,234"} <= set(texts)
    assert plot.text == "a & b: 1 → 0, 2 → 1,234"


@pytest.mark.parametrize(("to_scale", "gaps"), [(False, [110.0, 110.0]), (True, [55.0, 165.0])])
def test_x_values_are_spaced_evenly_or_to_scale(to_scale, gaps):
    plot = plot_lines("x", [100, 200, 500], {"y": [1, 2, 3]}, to_scale=to_scale)
    places = [float(place) for place in re.findall(r'<circle cx="([0-9.]+)"', plot.svg)]
    assert [after - before for before, after in itertools.pairwise(places)] == gaps


def test_a_picture_of_a_figure_says_in_words_what_it_shows_and_is_drawn_once():
    figure, axes = pyplot.subplots()
    axes.plot([1, 2])
    plot = picture(figure, "It rises from <1> to 2.")

    assert ElementTree.fromstring(plot.svg).tag.endswith("svg")
    assert 'alt="It rises from &lt;1&gt; to 2."' in plot._repr_html_()
    assert not pyplot.fignum_exists(figure.number)


def test_negative_numbers_stand_above_the_lower_end_of_the_axis():
    plot = plot_lines("x", [1, 2, 3], {"y": [-2.0, 0.0, 2.0]})
    low, middle, high = (float(place) for place in re.findall(r'<circle cx="[0-9.]+" cy="([0-9.]+)"', plot.svg))
    assert low - middle == pytest.approx(middle - high)
    assert f'y="{low + 4:.0f}" text-anchor="end">-2</text>' in plot.svg


def test_a_line_of_another_length_and_numbers_that_are_not_finite_are_refused():
    with pytest.raises(ProfilingError, match="got 1 numbers for 'y'"):
        plot_lines("x", [1, 2], {"y": [1.0]})
    for xs, ys in (([1, 2], [1.0, float("nan")]), ([1, float("inf")], [1.0, 2.0])):
        with pytest.raises(ProfilingError, match="expects finite numbers"):
            plot_lines("x", xs, {"y": ys})
