"""Say what to do about common exceptions of an answer, by their type and the words that Python and PyTorch use."""

ADVICE: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("TypeError", ("must be Tensor, not",), "torch functions take tensors; for a number of Python use `math`."),
    ("TypeError", ("unhashable type",), "A list, dict or slice cannot be a key: make a tuple or a text of it first."),
    ("TypeError", ("'NoneType' object",), "Something is None here: look whether each function returns its result."),
    (
        "AttributeError",
        ("'NoneType' object",),
        "Something is None here: look whether each function returns its result.",
    ),
    (
        "TypeError",
        ("'Proxy'",),
        "A traced value is no number: the part that asks for one has to stay one node, a leaf.",
    ),
    (
        "TraceError",
        ("control flow",),
        "A part that branches on a value cannot be traced: it has to stay one node, a leaf.",
    ),
    ("TypeError", ("positional argument", "were given"), "Compare the parameters with those in the task."),
    ("TypeError", ("unexpected keyword argument",), "Compare the parameters with those in the task."),
    ("RuntimeError", ("shapes cannot be multiplied",), "Print the shapes of both operands before this line."),
    ("RuntimeError", ("must match the size of tensor",), "Print the shapes of both operands before this line."),
    ("RuntimeError", ("is invalid for input of size",), "Print the shape before this line, and count its elements."),
    ("RuntimeError", ("have the same dtype",), "Print the dtypes of both operands: convert one of them."),
    (
        "RuntimeError",
        ("view size is not compatible",),
        "After a transpose memory is in another order: use reshape in place of view.",
    ),
    (
        "RuntimeError",
        ("Boolean value of Tensor", "ambiguous"),
        "A tensor of several values is neither true nor false: use torch.where, or .any() or .all().",
    ),
    ("RuntimeError", ("a leaf Variable that requires grad",), "Make a new tensor in place of writing to a parameter."),
    (
        "RuntimeError",
        ("does not require grad",),
        "A step before cut the graph: look for detach, item, data or no_grad.",
    ),
    ("EOFError", ("reading a line",), "Nobody is there to answer `input`: take what the function needs as arguments."),
    ("StopIteration", ("",), "next() found nothing: give it a second argument for this case."),
)
"""The type of an exception, words of its message that occur in this order, and the advice."""


def advice(kind: str, message: str) -> str:
    """Return what to do about an exception of the type `kind`, or an empty string.

    >>> advice("TypeError", "unhashable type: 'slice'")
    'A list, dict or slice cannot be a key: make a tuple or a text of it first.'
    """
    return next((says for name, words, says in ADVICE if name == kind and _occur(words, message)), "")


def _occur(words: tuple[str, ...], message: str) -> bool:
    start = 0
    for word in words:
        start = message.find(word, start)
        if start < 0:
            return False
    return True
