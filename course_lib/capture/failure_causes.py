"""Explain errors of PyTorch during a capture: the cause of each known message, and what to try."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from torch import nn

from course_lib.capture.source_lines import SourceLine, line_in_text, line_of_error
from course_lib.errors import CaptureError


@dataclass(frozen=True)
class Cause:
    """Describe one cause of a failed capture, recognised by the message of Python or PyTorch."""

    pattern: str
    why: str
    advice: str


FX = (
    Cause(
        "inputs to control flow",
        "the program decides by the value of a traced tensor, and while tracing there are no values",
        "Decide by something known before tracing (fix an argument with concrete_args), or compute both sides and "
        "choose with torch.where.",
    ),
    Cause(
        "Proxy object cannot be iterated",
        "the program loops over a traced value or unpacks it, and its length is not known while tracing",
        "Index it (x[0], x[1]), or loop over a number that is an attribute of the module.",
    ),
    Cause(
        r"'len' is not supported",
        "the program asks for the length of a traced value",
        "Use x.shape[0], which is recorded, or an attribute of the module.",
    ),
    Cause(
        "cannot be interpreted as an integer|slice indices must be integers|indices must be integers",
        "the program needs a whole number now, and a size of a traced tensor is known only when the graph runs",
        "Keep the number as an attribute of the module, or find a tensor operator that needs no number.",
    ),
    Cause(
        r"must be (a )?(string|real number)|real number is required|not 'Proxy'",
        "the program turns a traced value into a Python number",
        "Keep it a tensor, or keep the number as an attribute of the module.",
    ),
    Cause(
        "does not support item assignment",
        "the program assigns to a part of a traced tensor",
        "Build the new tensor with torch.where, torch.cat or index_put.",
    ),
    Cause(
        "__array_struct__|__array_ufunc__|numpy|np.ndarray",
        "the program hands a traced tensor, or a size of one, to NumPy",
        "Use the torch or math function of the same name.",
    ),
    Cause(
        "co_varnames is too small",
        "the program's forward lies behind a decorator that changes its arguments, which torch.fx cannot look through",
        "Capture its parts one by one, or the whole with mode 'export' or 'dynamo'.",
    ),
    Cause(
        "^argument of type",
        "an operator is given, or the program returns, an object that a graph cannot hold",
        "Use tensors, numbers, texts, and tuples, lists or dicts of them.",
    ),
)

VALUE = Cause(
    "_local_scalar_dense|value out of a tracing tensor|DataDependent|data-dependent",
    "the program asks for the value of a tensor, and the graph must hold for all values",
    "Compute both sides and choose with torch.where, use torch.cond, or capture with mode 'dynamo', which falls back "
    "to Python there.",
)
OUTPUT = Cause(
    r"Found <class .*> in output",
    "the program returns an object of a class that PyTorch cannot take apart",
    "Return tensors, or tuples, lists and dicts of them.",
)
FORWARD_MODE = Cause(
    "forward-mode derivatives end the process",
    "the program takes forward-mode derivatives (jvp, jacfwd, dual numbers), at which PyTorch may end the process here",
    "Capture with mode 'make_fx', 'dynamo' or 'export', or take the derivative with torch.func.vjp or grad.",
)
COROUTINE = Cause(
    "coroutines end the process",
    "the program drives a coroutine, after which Dynamo may end the process",
    "Call plain functions, or capture with mode 'make_fx' or 'export'.",
)
TRACE = (
    FORWARD_MODE,
    Cause(
        "dict at the output",
        "the program returns a dict, and a trace cannot know whether its keys are always the same",
        "Return a tuple, or capture with mode 'export'.",
    ),
    Cause(
        "Only tensors|cannot infer|cannot be traced|Unknown type",
        "the program takes or returns something that is no tensor, and no tuple, list or dict of tensors",
        "Take and return tensors, or capture with mode 'export'.",
    ),
)
SCRIPT = (
    Cause(
        "get source|IndentationError|SyntaxError|single top-level function",
        "TorchScript compiles source text, and that of a part of the program cannot be found or read",
        "Write the program with def, in a file or a cell, without lambdas, classes and functions that are made at run "
        "time.",
    ),
    Cause(
        "(?i)support|no attribute|cannot be used as a value|variable number of arguments|undefined value",
        "the program uses a part of Python that TorchScript does not have",
        "Rewrite that line with tensor operators and typed containers, or keep it as Python with @torch.jit.ignore.",
    ),
    Cause(
        "(?i)type|expected",
        "a value has another type than TorchScript was told, or takes it for; without a word it takes it for a tensor",
        "Annotate arguments, attributes and empty containers with their types.",
    ),
)
LAZY = (
    OUTPUT,
    FORWARD_MODE,
    Cause(
        "lazy tensors end the process",
        "an operator such as split, chunk or unbind gives a list of views, at which lazy tensors end the process",
        "Take the parts one by one, with narrow or slices.",
    ),
    Cause(
        "not a lazy tensor|device",
        "an operator met a tensor that is not lazy: one made on another device than the inputs, or a view of a kind "
        "that lazy tensors do not know",
        "Make tensors from an input (x.new_zeros(...), torch.ones_like(x)), and slice in place of chunk.",
    ),
)
NUMPY = Cause(
    "numpy",
    "the program hands a tensor to NumPy, which sees only values",
    "Use the torch function of the same name.",
)
CAUSES: Mapping[str, tuple[Cause, ...]] = {
    "fx": FX,
    "trace": TRACE,
    "script": SCRIPT,
    "make_fx": (VALUE, NUMPY, OUTPUT),
    "dynamo": (COROUTINE, VALUE, OUTPUT),
    "export": (VALUE, OUTPUT, NUMPY),
    "aot": (VALUE, OUTPUT, NUMPY),
    "lazy": LAZY,
}
RUNS = "See that the program runs on the example inputs as it is; else read what PyTorch says."
UNKNOWN: Mapping[str, Cause] = {
    "fx": Cause(
        "",
        "the program failed on the stand-ins (proxies) that take the place of tensors while tracing",
        "If it runs on real tensors, name the module it happens in with leaf_modules, to keep it as one node.",
    ),
    "trace": Cause("", "the program failed while its operators were recorded", RUNS),
    "script": Cause("", "the source text goes beyond the typed part of Python that TorchScript compiles", RUNS),
    "make_fx": Cause("", "the program failed while the dispatcher was recording", RUNS),
    "dynamo": Cause("", "the program failed under Dynamo", RUNS),
    "export": Cause("", "the program failed on the stand-ins (fake tensors) that export traces with", RUNS),
    "aot": Cause("", "the program failed on the stand-ins (fake tensors) that AOTAutograd traces with", RUNS),
    "lazy": Cause("", "the program failed on lazy tensors", RUNS),
}


def name_of(program: object) -> str:
    """Return a name for a program, for use in messages."""
    if isinstance(program, nn.Module):
        return type(program).__name__
    return str(getattr(program, "__name__", "the program"))


@contextmanager
def explaining(mode: str, program: object) -> Iterator[None]:
    """Turn any error of the program or of PyTorch during a capture in this mode into a `CaptureError`."""
    try:
        yield
    except Exception as error:  # the program runs, also on proxies and fake tensors, and may raise anything
        cause, line = _cause(mode, error), _line(mode, error)
        raise CaptureError(
            f"{mode} could not capture {name_of(program)}{f' at {line}' if line else ''}: {cause.why}. {cause.advice} "
            f"({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        ) from error


def reason_in_short(mode: str, refusal: CaptureError) -> str:
    """Return why a capture was refused, in one sentence without advice."""
    error = refusal.__cause__
    if not isinstance(error, Exception):
        return str(refusal)
    why, line = _cause(mode, error).why, _line(mode, error)
    return f"{why[0].upper()}{why[1:]}" + (f" ({line})." if line else ".")


def _cause(mode: str, error: Exception) -> Cause:
    said = f"{type(error).__name__}: {error}" if mode != "fx" else str(error)
    return next((cause for cause in CAUSES[mode] if re.search(cause.pattern, said)), UNKNOWN[mode])


def _line(mode: str, error: Exception) -> SourceLine | None:
    # TorchScript and Dynamo name the line in their message; the others fail inside the program's own frames.
    return (line_in_text(str(error)) if mode in ("script", "dynamo") else None) or line_of_error(error)
