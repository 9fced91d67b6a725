"""Exercise 13.1: predict which kernel of attention PyTorch takes on a CPU, from the arguments of a call."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.exercises.questions import Question, kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.value import ValueAnswer

OUTCOMES = ("flash", "math", "error")
DTYPES = ("float32", "float64", "bfloat16", "float16")
Call = Question
Change = Callable[[Call, Draw], None]

known = kept(__name__, "known")


def call_of(draw: Draw, *changes: Change) -> Call:
    """Return a call that the fused kernel takes, with these changes."""
    batch, heads, queries, keys = (draw.integer(2, 9) for _ in range(4))
    width = draw.choice((8, 16, 24, 32, 40))
    call: Call = {
        "query": [batch, heads, queries, width],
        "key": [batch, heads, keys, width],
        "value": [batch, heads, keys, width],
        "dtype": draw.choice(DTYPES[:3]),
        "mask": None,
        "causal": False,
        "dropout": 0.0,
        "trains": False,
        "turned": False,
        "allowed": ["flash", "math"],
    }
    for change in changes:
        change(call, draw)
    return call


def mask(*shape: str, dtype: str = "", learned: bool = False) -> Change:
    """Return a change that adds a mask; its shape names dimensions, such as "queries"; "one" is 1."""

    def change(call: Call, draw: Draw) -> None:
        batch, heads, queries, _ = call["query"]
        sizes = {"batch": batch, "heads": heads, "queries": queries, "keys": call["key"][2], "one": 1}
        kind = dtype or (call["dtype"] if learned else draw.choice(("bool", call["dtype"])))
        call["mask"] = {"shape": [sizes[name] for name in shape], "dtype": kind, "learned": learned}

    return change


def other_mask_dtype(call: Call, draw: Draw) -> None:
    """Add a mask of numbers in another dtype than the query's."""
    mask("queries", "keys", dtype="float16" if call["dtype"] != "float16" else "bfloat16")(call, draw)


def setting(**values: Any) -> Change:
    """Return a change that sets entries of a call."""
    return lambda call, _: call.update(values)


def dropped(call: Call, draw: Draw) -> None:
    """Give the call a probability of dropout that few other calls have."""
    call["dropout"] = draw.integer(1, 60) / 100


def without_batch(call: Call, _: Draw) -> None:
    """Leave out the first dimension of query, key and value."""
    call.update({name: call[name][1:] for name in ("query", "key", "value")})


def wide_values(call: Call, draw: Draw) -> None:
    """Give the values another width."""
    call["value"] = [*call["value"][:3], call["value"][3] + draw.choice((4, 8))]


def allowing(*kernels: str) -> Change:
    """Return a change that allows only these kernels, as `sdpa_kernel` does."""
    return setting(allowed=list(kernels))


Changes = tuple[tuple[Change, ...], ...]

TIMES = 3  # calls with the same changes: a lucky guess of all of them is rare

PLAIN: Changes = ((), (setting(dtype="float64"),), (setting(dtype="float16"),))
CAUSAL: Changes = ((setting(causal=True),), (setting(causal=True, trains=True),))
SHAPES: Changes = ((without_batch,), (wide_values,), (setting(turned=True),))
DROPPED: Changes = ((dropped,), (dropped,), (dropped, setting(causal=True)))
MASKS: Changes = (
    (mask("queries", "keys"),),
    (mask("batch", "one", "one", "keys"),),
    (mask("batch", "heads", "queries", "keys"),),
    (mask("one", "one", "queries", "keys"),),
    (mask("one", "queries", "keys"),),
    (mask("queries", "keys", learned=True),),
)
BOTH: tuple[Change, ...] = (setting(causal=True), mask("queries", "keys"))
REFUSED: Changes = (
    BOTH,
    (*BOTH, dropped),
    (*BOTH, setting(turned=True)),
    (other_mask_dtype,),
    (setting(dtype="float64"), mask("queries", "keys", dtype="float32")),
)
ALLOWED: Changes = (
    (allowing("math"),),
    (allowing("flash"),),
    (allowing("flash"), without_batch),
)


def predicts(*groups: Changes) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that calls with these changes, `TIMES` of each, are predicted in random order."""
    changes = [each for group in groups for each in group] * TIMES

    def run(answer: ValueAnswer, draw: Draw) -> None:
        calls = [call_of(draw, *each) for each in draw.sample(changes, len(changes))]
        require_predicted([(call, _predicted(answer, call)) for call in calls])

    return run


def _predicted(answer: ValueAnswer, call: Call) -> str:
    prediction: Any = answer.ask(call)
    if type(prediction) is not str or prediction not in OUTCOMES:
        raise CheckFailedError(
            f"predict_backend returned {repr(prediction)[:80]}; expected one of {', '.join(OUTCOMES)}."
        )
    return prediction


def require_predicted(predictions: Sequence[tuple[Call, str]]) -> None:
    """Raise `CheckFailedError` unless the kernels of all calls are predicted.

    Of the known mistakes that explain the first wrong prediction, the message names the one that agrees with most of
    all predictions: one call alone often has several explanations.
    """
    about = [known(call) for call, _ in predictions]
    first = next((at for at, (_, told) in enumerate(predictions) if told != about[at]["right"]), None)
    if first is None:
        return
    agreeing: Counter[str] = Counter()
    for (_, told), each in zip(predictions, about, strict=True):
        agreeing.update(says for value, says in each["wrong"] if value == told)
    call, told = predictions[first]
    explaining = [says for value, says in about[first]["wrong"] if value == told]
    why = max(explaining, key=agreeing.__getitem__, default="")
    raise CheckFailedError(f"{_told(call)}: predicted {told!r}, and it is {about[first]['right']!r}. {why}".strip())


def _told(call: Mapping[str, Any]) -> str:
    """Return a call in a few words."""
    told = [f"query {call['query']}, key {call['key']}, value {call['value']} in {call['dtype']}"]
    if call["mask"]:
        learned = " that requires gradients" if call["mask"]["learned"] else ""
        told.append(f"a {call['mask']['dtype']} mask {call['mask']['shape']}{learned}")
    told += ["causal"] * call["causal"]
    told += ["query, key and value that require gradients"] * call["trains"]
    told += [f"dropout {call['dropout']}"] * bool(call["dropout"])
    told += ["a key whose last dimension is not contiguous"] * call["turned"]
    told += [f"only {call['allowed'][0]} allowed"] * (len(call["allowed"]) == 1)
    return ", ".join(told)


EXERCISE = Exercise(
    title="Predict the kernel of attention",
    kind=Kind.VALUE,
    entry_point="predict_backend",
    points=6,
    wall_s=20,
    masked=("torch",),  # the worker could make the calls and look
    hints=(
        "Ask in this order: does the mask's dtype fit, can the fused kernel take the call, and can what "
        "is left and allowed take it?",
        "The fused kernel asks for four dimensions, equal widths, no dropout, contiguous last dimensions, and masks of "
        "two or four dimensions that require no gradient.",
        "If nothing that is allowed can take the call, it is an error. Math takes every call, but for a mask that is "
        "causal, too.",
    ),
    checks=(
        Check("dtypes, dropout and causal calls", "dropout", 1, predicts(PLAIN, CAUSAL, DROPPED)),
        Check("masks", "masks", 1.5, predicts(PLAIN, MASKS)),
        Check("shapes and layouts", "shapes", 1, predicts(PLAIN, SHAPES)),
    ),
)
