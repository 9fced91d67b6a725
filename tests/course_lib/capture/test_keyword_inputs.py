"""Programs whose inputs are given by name, as those of Hugging Face are."""

import pytest
import torch
from torch import nn

from course_lib.capture import capture, compare_modes
from course_lib.capture.modes import MODES
from course_lib.errors import CaptureError


class Affine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * scale - shift


def affine(x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    return x * scale - shift


X, SCALE, SHIFT = (torch.randn(2, 3, generator=torch.Generator().manual_seed(n)) for n in range(3))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", [Affine(), affine], ids=["module", "function"])
@pytest.mark.parametrize("by_place", [0, 1, 2])
def test_inputs_by_name_and_by_place_are_mixed_as_in_a_call(mode: str, program: nn.Module, by_place: int) -> None:
    named = dict(list({"x": X, "scale": SCALE, "shift": SHIFT}.items())[by_place:])
    given = (X, SCALE, SHIFT)[:by_place]
    captured = capture(program, given, example_kwarg_inputs=named, mode=mode)
    expected = program(X + 1, SCALE, SHIFT + 1)
    changed = {**named, "shift": SHIFT + 1} | ({"x": X + 1} if "x" in named else {})
    found = captured(*(value + 1 if value is X else value for value in given), **changed)
    torch.testing.assert_close(found, expected)


def test_a_comparison_takes_a_probe_by_name() -> None:
    def branching(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return x + other if x.sum() > 0 else x - other

    ones = torch.ones(3)
    compared = compare_modes(
        branching,
        (),
        [{"x": -ones, "other": ones}],
        example_kwarg_inputs={"x": ones, "other": ones},
        modes=("trace", "fx", "dynamo", "lazy"),
    )
    assert compared.verdicts == {
        "trace": "silently wrong",
        "fx": "refused",
        "dynamo": "captured",
        "lazy": "captured",
    }


def test_hugging_faces_model_is_captured_with_a_mask_by_name() -> None:
    from transformers import BertConfig, BertLMHeadModel

    sizes = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40, "num_hidden_layers": 1}
    model = BertLMHeadModel(BertConfig(vocab_size=50, **sizes)).eval()
    tokens, mask = torch.randint(50, (2, 7)), torch.ones(2, 7, dtype=torch.int64)
    padded = mask.index_fill(1, torch.tensor([6]), 0)
    compared = compare_modes(
        model,
        (),
        [{"input_ids": tokens.flip(0), "attention_mask": padded}],
        example_kwarg_inputs={"input_ids": tokens, "attention_mask": mask},
        modes=("dynamo", "export"),
    )
    assert set(compared.verdicts.values()) == {"captured"}, compared
    exported = compared["export"].captured
    assert exported is not None
    with_mask, without = (exported(input_ids=tokens, attention_mask=m).logits for m in (padded, mask))
    assert not torch.equal(with_mask, without)


def test_inputs_that_were_given_by_name_are_left_as_they_are() -> None:
    def writes(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1)

    x = torch.zeros(3)
    for mode in MODES:
        capture(writes, example_kwarg_inputs={"x": x}, mode=mode)
    assert not x.any()


def test_an_export_of_a_function_takes_other_sizes_where_it_is_told_so() -> None:
    batch = torch.export.Dim("batch", min=2)
    for shapes in ({"x": {0: batch}, "scale": {0: batch}, "shift": {0: batch}}, ({0: batch},) * 3):
        captured = capture(
            affine,
            (X,),
            example_kwarg_inputs={"scale": SCALE, "shift": SHIFT},
            mode="export",
            dynamic_shapes=shapes,
        )
        longer = [torch.cat([value, value]) for value in (X, SCALE, SHIFT)]
        torch.testing.assert_close(captured(longer[0], scale=longer[1], shift=longer[2]), affine(*longer))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"example_inputs": {"x": X}}, "example_kwarg_inputs"),
        ({"example_kwarg_inputs": (X,)}, "from name to input"),
        ({"example_kwarg_inputs": {}, "mode": "make_fx"}, "no example_inputs"),
        ({"example_inputs": (X,), "example_kwarg_inputs": {"y": X}, "mode": "trace"}, "an input named y"),
        ({"example_inputs": (X,), "example_kwarg_inputs": {"y": X}, "mode": "export"}, "export could not capture"),
    ],
)
def test_what_cannot_be_inputs_is_refused_with_a_sentence(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(CaptureError, match=words):
        capture(affine, **arguments)  # type: ignore[arg-type]  # wrong on purpose
