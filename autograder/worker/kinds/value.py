"""Call an answer that is a function from plain data to plain data."""

import math
import numbers
from collections.abc import Callable
from typing import Any

from autograder.protocol import Handlers, Json, Result, Tensors
from autograder.protocol.requests.answers import Ask, AskEach, RunNamedPass, Value, ValueOnGraph
from autograder.protocol.requests.loads import LoadAnswer
from autograder.worker import source
from autograder.worker.source import AnswerError


class NotPlainDataError(AnswerError):
    """The value contains something other than None, bool, int, float, str, list, tuple and dict."""


def load_without_torch(request: LoadAnswer, _: Tensors) -> Handlers:
    """Load an answer from plain data to plain data in a worker that has no torch."""
    return value_answer(source.load({part.name: part.text for part in request.parts}, request.entry_point))


def value_answer(entry: Callable[..., Any]) -> Handlers:
    """Return the request handlers for a value answer."""

    def ask(request: Ask, _: Tensors) -> Result[Value]:
        result = entry(request.question)
        if request.keys and isinstance(result, dict):
            result = {key: result[key] for key in request.keys if key in result}
        return Result(Value(plain_data(result, "the result")))

    def ask_each(request: AskEach, _: Tensors) -> Result[Value]:
        return Result(Value([plain_data(entry(question), "the result") for question in request.questions]))

    def run_named_pass(request: RunNamedPass, _: Tensors) -> Result[ValueOnGraph]:
        from torch import fx
        from torch._inductor.custom_graph_pass import CustomGraphPass

        from autograder.worker.kinds.graph import written
        from course_lib.graph import from_data

        graph = from_data(request.graph, {}).graph
        made = entry(**request.options)
        if not isinstance(made, CustomGraphPass):
            raise AnswerError(
                f"The function returned {type(made).__name__}; expected an object of a class that is derived from "
                "`torch._inductor.custom_graph_pass.CustomGraphPass`, as Inductor takes no other."
            )
        made(graph)
        name, left = repr(made.uuid()), written(fx.GraphModule({}, graph))
        return Result(ValueOnGraph(name, left.body), left.tensors)

    return {Ask: ask, AskEach: ask_each, RunNamedPass: run_named_pass}


def plain_data(value: Any, where: str) -> Json:
    """Return `value` as JSON data; raises `NotPlainDataError`, naming `where`, for other types.

    A value of a class derived from a plain one, such as `torch.__version__`, is taken as it is read by that class,
    whatever its own methods say. A number of NumPy, and one of a tensor without dimensions, is the plain number.
    """
    if getattr(value, "shape", None) == ():  # one number of NumPy or PyTorch
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, numbers.Integral):
        return int.__int__(value) if isinstance(value, int) else int(value)
    if isinstance(value, numbers.Real):
        number = float.__float__(value) if isinstance(value, float) else float(value)
        if not math.isfinite(number):
            raise NotPlainDataError(f"{where} is {number}; only finite numbers can be answers.")
        return number
    if isinstance(value, list | tuple):  # a torch.Size is a tuple, too
        return [plain_data(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, dict) and all(isinstance(key, str) for key in dict.keys(value)):
        return {str.__str__(key): plain_data(item, f"{where}[{key!r}]") for key, item in dict.items(value)}
    raise NotPlainDataError(
        f"{where} is a {type(value).__name__}; "
        "answer with None, bool, int, float, str, and lists and dicts (with str keys) of them."
    )
