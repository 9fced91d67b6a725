"""Comparing says who captures, who refuses and who is wrong, of any program, and touches nothing."""

import copy
import logging
import random
import warnings
from html.parser import HTMLParser

import pytest
import torch
from torch import nn

from course_lib.capture import capture, compare_modes
from course_lib.capture.behaviour import Call, behaviour_of, deviation
from course_lib.capture.differences import difference
from course_lib.capture.modes import MODES
from course_lib.errors import CaptureError
from course_lib.models import TransformerConfig, TransformerLayer
from course_lib.models.gallery import GALLERY

HUGGING_FACE_VERDICTS = {
    "trace": "captured",
    "script": "refused",
    "fx": "refused",
    "make_fx": "refuses a probe",
    "dynamo": "captured",
    "export": "captured",
    "aot": "refuses a probe",
    "lazy": "captured",
}


def _bert(**settings: object) -> nn.Module:
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertLMHeadModel

    sizes = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40, "num_hidden_layers": 1}
    config = BertConfig(
        vocab_size=50, max_position_embeddings=32, is_decoder=True, use_cache=False, **sizes, **settings
    )
    return BertLMHeadModel(config).eval()


def test_hugging_face_bert_in_every_mode_with_another_length_as_a_probe():
    ids, longer = torch.randint(50, (2, 7)), torch.randint(50, (2, 9))
    shapes = {"input_ids": {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}}
    comparison = compare_modes(_bert(return_dict=False), (ids,), [(ids + 0,), (longer,)], dynamic_shapes=shapes)
    assert comparison.verdicts == HUGGING_FACE_VERDICTS, comparison
    assert "decorator" in comparison["fx"].why
    assert "source text" in comparison["script"].why
    assert len(comparison["dynamo"].captured.graphs) == 1


def test_hugging_face_bert_that_returns_an_object_of_its_own_class():
    ids = torch.randint(50, (2, 7))
    comparison = compare_modes(_bert(), (ids,), modes=("trace", "make_fx", "dynamo", "export", "aot"))
    assert comparison["trace"].why.startswith("The program returns a dict")
    assert comparison["make_fx"].why == (
        "On the example: the result has a dict in place of a CausalLMOutputWithCrossAttentions."
    )
    assert [comparison[mode].verdict for mode in ("dynamo", "export", "aot")] == ["captured"] * 3


def test_our_layer_is_captured_by_every_mode():
    layer = TransformerLayer(TransformerConfig(hidden_size=8, num_heads=2, intermediate_size=16)).eval()
    inputs = (torch.randn(2, 5, 8),), [(torch.randn(2, 5, 8),)]
    comparison = compare_modes(layer, *inputs)
    assert set(comparison.verdicts.values()) == {"captured"}, comparison
    with_mask = capture(layer, (*inputs[0], torch.zeros(5, 5))).graph_module
    open_mask = capture(layer).graph_module
    for graph_module, taken in ((comparison["fx"].captured.graph_module, 1), (with_mask, 2), (open_mask, 2)):
        assert len(graph_module.graph.find_nodes(op="placeholder")) == taken


def test_an_argument_that_example_inputs_leave_out_keeps_its_default():
    def scaled(x, factor=2.0, shift=None):
        return x * factor if shift is None else x * factor + shift

    x = torch.ones(2)
    assert torch.equal(capture(scaled, (x,))(x), 2 * x)
    assert torch.equal(capture(scaled, (x,), concrete_args={"factor": 3.0})(x), 3 * x)
    assert torch.equal(capture(scaled, example_kwarg_inputs={"x": x, "shift": x})(x, shift=x), 3 * x)
    assert "shift" in capture(scaled).code


class Dropout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.calls: int = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        x.mul_(2)
        return self.norm(x) * (1 if self.training else 2)


def test_program_inputs_and_everything_global_are_left_alone(capsys, recwarn):
    model, x = Dropout(), torch.rand(5, 3)
    before, given = copy.deepcopy(model.state_dict()), x.clone()
    torch.manual_seed(3)
    random.seed(3)
    expected = torch.rand(1), random.random()
    torch.manual_seed(3)
    random.seed(3)
    disabled, filters = logging.root.manager.disable, list(warnings.filters)
    with torch.no_grad():
        compare_modes(model, (x,), [(x,)], switch_training=True)
        assert not torch.is_grad_enabled()
    assert (torch.rand(1), random.random()) == expected
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert (model.calls, model.training) == (0, True)
    assert torch.equal(x, given)
    assert (logging.root.manager.disable, list(warnings.filters)) == (disabled, filters)
    assert capsys.readouterr() == ("", "")
    assert not recwarn.list


class _Cells(HTMLParser):
    """Counts the cells of a page's tables."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)


def test_the_result_is_a_table_as_text_and_as_html():
    def branches(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 0 else x

    comparison = compare_modes(branches, (torch.ones(2),), [(-torch.ones(2),)])
    lines = str(comparison).splitlines()
    assert lines[0] == "branches"
    assert lines[1].split() == ["mode", "verdict", "why"]
    assert [line.split()[0] for line in lines[3:] if line[0] != " "] == list(MODES)
    assert max(map(len, lines)) <= 120
    assert "trace    ✗  silently wrong  On probe 1: the result is off by 1." in lines
    assert repr(comparison) == str(comparison)
    cells = _Cells()
    cells.feed(comparison._repr_html_())
    assert cells.seen.count("td") == 4 * len(MODES)
    assert cells.seen.count("th") == 4
    assert "if x.sum() &gt; 0" in comparison._repr_html_()


def test_a_mode_that_was_not_compared_is_refused():
    comparison = compare_modes(nn.ReLU(), (torch.ones(2),), modes=("trace", "fx"))
    with pytest.raises(CaptureError, match="'lazy' was not compared; these were: trace, fx"):
        _ = comparison["lazy"]


def test_a_program_that_fails_by_itself_is_no_comparison():
    with pytest.raises(CaptureError, match="relu itself fails on the example inputs"):
        compare_modes(torch.relu, ("text",))
    with pytest.raises(CaptureError, match="only a module has a training mode"):
        compare_modes(torch.relu, (torch.ones(2),), switch_training=True)


def test_a_program_that_cannot_be_copied_is_refused():
    model = nn.ReLU()
    model.lock = (part for part in ())
    with pytest.raises(CaptureError, match="ReLU cannot be copied"):
        compare_modes(model, (torch.ones(2),))


class DrawsInBackward(torch.autograd.Function):
    """Double the input; draw random numbers in the backward pass, and do not use them."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        torch.rand(3)
        return gradient * 2


class PrintsInBackward(torch.autograd.Function):
    """Double the input; print in the backward pass."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        print("backward")
        return gradient * 2


@pytest.mark.parametrize(
    ("function", "why"), [(DrawsInBackward, "draws other random numbers"), (PrintsInBackward, "prints ''")]
)
def test_a_capture_that_loses_an_effect_of_the_backward_pass_is_wrong(function, why):
    def doubles(x):
        return function.apply(x)

    found = compare_modes(doubles, (torch.rand(3, 4),), modes=("trace", "fx", "make_fx", "export", "lazy"))
    wrong = dict.fromkeys(("fx", "make_fx", "export"), "silently wrong")
    assert found.verdicts == {"trace": "captured", **wrong, "lazy": "captured"}
    assert why in found["make_fx"].why


ONES = torch.ones(2)
DIFFERENCES = [
    (ONES, ONES.clone(), ""),
    (ONES, ONES + 1e-9, ""),
    (ONES, ONES * 3, "off by 2"),
    (ONES, ONES.double(), "float64 in place of float32"),
    (ONES, torch.ones(3), "shape [3] in place of [2]"),
    (ONES * float("nan"), ONES * float("nan"), ""),
    (ONES, None, "a NoneType in place of a Tensor"),
    ((ONES, ONES), [ONES, ONES], "a list in place of a tuple"),
    ((ONES,), (ONES, ONES), "2 parts in place of 1"),
    ({"a": ONES}, {"b": ONES}, "keys b in place of a"),
    ({"a": ONES}, {"a": ONES + 1}, "off by 1"),
    (3, 4, "4 in place of 3"),
    (0.1 + 0.2, 0.3, ""),
    (float("nan"), float("nan"), ""),
    ("a", "b", "'b' in place of 'a'"),
]


@pytest.mark.parametrize(("expected", "found", "words"), DIFFERENCES)
def test_differences_are_told_in_a_few_words(expected, found, words):
    assert difference(expected, found) == words


@pytest.mark.parametrize("name", GALLERY)
def test_the_gallery_tells_what_each_mode_makes_of_the_program(name):
    entry = GALLERY[name]
    comparison = compare_modes(
        entry.build(), entry.example_inputs(), entry.probe_inputs(), switch_training=entry.switch_training
    )
    assert comparison.verdicts == {mode: entry.verdict(mode) for mode in MODES}, comparison
    for result in comparison.results:
        assert result.why
        assert "\n" not in result.why
        assert (result.captured is None) == (result.verdict == "refused")


def test_an_input_that_is_moved_to_other_memory_is_told_from_one_that_is_written() -> None:
    def moves(x: torch.Tensor) -> torch.Tensor:
        x.data = x.data * 2
        return x + 1

    def writes(x: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return x + 1

    call = Call((torch.rand(3),), seed=1)
    said = deviation(behaviour_of(moves, call), behaviour_of(writes, call), ())
    assert said == "the inputs are left in other memory, or with other strides, than by the program"
    x = torch.ones(3)
    view = x.view(3)
    capture(moves, (x,), mode="lazy").run(x)
    assert (x[0], view[0]) == (2, 1)
    capture(writes, (view,), mode="lazy").run(view)
    assert view[0] == 2


def test_a_list_that_was_an_input_keeps_its_tensors_in_lazy_capture() -> None:
    tensors = [torch.zeros(2), torch.zeros(2)]
    before = list(tensors)
    capture(lambda held: held[0].add_(1) + held[1], (tensors,), mode="lazy").run(tensors)
    assert all(one is other for one, other in zip(tensors, before, strict=True))
    assert before[0].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"example_inputs": torch.ones(2, 3)}, r"got example_inputs of type Tensor.*\(x,\)"),
        ({"probe_inputs": (torch.ones(2, 3),)}, r"got probe 1 of type Tensor.*\(x,\)"),
        ({"probe_inputs": torch.ones(2, 3)}, "got probe_inputs of type Tensor"),
        ({"modes": ("fx", "jit")}, r"got modes=\('fx', 'jit'\); it expects several of 'trace', 'script'"),
        ({"modes": "fx"}, "got modes='fx'; it expects several of"),
        ({"modes": (mode for mode in ("fx", "trace"))}, "got modes=<generator.*; it expects several of"),
        ({"modes": (["fx"],)}, r"got modes=\(\['fx'\],\); it expects several of"),
    ],
    ids=["example", "probe", "probes", "unknown mode", "one mode", "generator", "list in a tuple"],
)
def test_inputs_that_are_no_tuple_and_modes_that_do_not_exist_are_refused(arguments, sentence):
    given = {"example_inputs": (torch.ones(2, 3),), "modes": ("fx",), **arguments}
    with pytest.raises(CaptureError, match=f"compare_modes {sentence}"):
        compare_modes(nn.ReLU(), **given)
