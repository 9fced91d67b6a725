"""Why a symbolic trace failed, in words, and what to try."""

import re
from dataclasses import dataclass

from course_lib.capture.source import line_of_error
from course_lib.errors import CaptureError


@dataclass(frozen=True)
class Cause:
    """One reason for which tracing fails, known by what Python or torch.fx says about it."""

    pattern: str
    why: str
    advice: str


CAUSES = (
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
        "__array_struct__|numpy",
        "the program hands a traced tensor to NumPy",
        "Use the torch function of the same name.",
    ),
    Cause(
        "^argument of type",
        "an operator is given, or the program returns, an object that a graph cannot hold",
        "Use tensors, numbers, texts, and tuples, lists or dicts of them.",
    ),
)
UNKNOWN = Cause(
    "",
    "the program failed on the stand-ins (proxies) that take the place of tensors while tracing",
    "If it runs on real tensors, name the module it happens in with leaf_modules, to keep it as one node.",
)


def explain_failure(name: str, error: Exception) -> CaptureError:
    """Return the error to raise when tracing the program called `name` failed with `error`."""
    cause = next((cause for cause in CAUSES if re.search(cause.pattern, str(error))), UNKNOWN)
    line = line_of_error(error)
    said = " ".join(str(error).split())[:160]
    return CaptureError(
        f"fx could not capture {name}" + (f" at {line}" if line else "") + f": {cause.why}. {cause.advice} "
        f"({type(error).__name__}: {said})"
    )
