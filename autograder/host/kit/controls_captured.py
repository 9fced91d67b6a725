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

if isinstance(_given, type):
    _functions = [n for n in vars(_given) if callable(getattr(_given, n)) and not n.startswith("__")]
    {entry} = type("{entry}", (), {{n: staticmethod(_spoil(getattr(_given, n))) for n in _functions}})
else:
    {entry} = _spoil(_given)
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
