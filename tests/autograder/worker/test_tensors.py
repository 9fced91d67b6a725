"""Tensors cross from and to the host by what PyTorch defines, whatever an answer put into `torch.Tensor`."""

import ast
import inspect

import pytest
import torch

from autograder.protocol import RawTensor
from autograder.protocol.requests.answers import Arguments, TensorCall
from autograder.worker import tensors
from autograder.worker.tensors import call_on_tensors

USED = {node.attr for node in ast.walk(ast.parse(inspect.getsource(tensors))) if isinstance(node, ast.Attribute)}
OF_TENSORS = sorted(name for name in USED if hasattr(torch._C.TensorBase, name) and not name.startswith("__"))
OF_TORCH = [(torch, "empty"), (torch, "frombuffer"), (torch.autograd, "grad")]
REPLACED = [*((torch.Tensor, name) for name in OF_TENSORS), *OF_TORCH]


IDS = [name for _, name in REPLACED]


def elements(found: RawTensor) -> list[float]:
    """Return the elements of an output."""
    return [float(each) for each in memoryview(found.data).cast("f")]


def of_the_answer(*_: object, **__: object) -> object:
    raise AssertionError("a method of the answer ran")


@pytest.mark.parametrize(("owner", "name"), REPLACED, ids=IDS)
def test_what_an_answer_puts_in_the_place_of_a_function_of_pytorch_does_not_read_its_tensors(monkeypatch, owner, name):
    is_value = owner is torch.Tensor and not callable(vars(torch._C.TensorBase)[name])
    given = [RawTensor("float32", (n,), (1,), torch.tensor([1.0, 2.0][:n]).numpy().tobytes()) for n in (2, 2, 0)]
    # PyTorch's own backward reads shapes and dtypes in Python
    wanted = {} if is_value else {"cotangents": (1,), "wrt": (0,)}

    def answer(x: torch.Tensor, nothing: torch.Tensor) -> tuple[torch.Tensor, ...]:
        result = x * 3, x, nothing
        monkeypatch.setattr(owner, name, property(of_the_answer) if is_value else of_the_answer, raising=False)
        return result

    found = call_on_tensors(answer, TensorCall(Arguments(({"tensor": 0}, {"tensor": 2}), {}), **wanted), given)
    monkeypatch.undo()

    gradients = [[3.0, 6.0]] * bool(wanted)
    assert [elements(each) for each in found.tensors] == [[3.0, 6.0], [1.0, 2.0], [], *gradients]
    assert found.body.aliases == (1,)


def test_an_answer_may_replace_the_functions_before_its_first_call(monkeypatch):
    for owner, name in REPLACED:
        monkeypatch.setattr(owner, name, of_the_answer, raising=False)
    raw = tensors.to_raw(tensors.to_torch(RawTensor("float32", (2,), (1,), bytes(8))), "the output")
    monkeypatch.undo()
    assert elements(raw) == [0.0, 0.0]


def test_the_methods_that_are_used_are_known():
    assert {"detach", "contiguous", "cpu", "data_ptr", "untyped_storage", "requires_grad"} <= set(OF_TENSORS)
