"""Standard controls of answers that are captured: each function of the answer is spoilt in the same way."""

AROUND_CAPTURED = """
{reference}

_given, _last = {entry}, []

def _spoil(_right):
    def spoilt(*args, **kwargs):
        return _change(_right, args, kwargs)
    return spoilt

def _change(_right, args, kwargs):
{body}

def {entry}(*args, **kwargs):
    if args or kwargs:
        return _change(_given, args, kwargs)
    return {{name: _spoil(function) for name, function in _given().items()}}
"""
"""Text around one change; ``args`` and ``kwargs`` are those of the call that ``_right`` would answer."""

SPOILT = (
    "zeros",
    "copy of an input",
    "wrong in the first output only",
    "NaN",
    "one precision lower",
)
"""The changes of answers that are functions on tensors which say something about graphs, too."""
