"""Exercise 05.7: prove that three passes are wrong, each by a program whose result the pass changes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import fx

from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.counterexample import Trial, disproves
from autograder.host.kinds.returned_values import Values

METHODS = ("abs_", "exp_", "neg_", "relu_", "sigmoid_", "tanh_", "zero_")
MAX_NODES = 8  # too few for one program that is wrong after every variant
TEXT = """
from course_lib.fusion.mistaken import {name}

def reference(program, *inputs):
    return program(*inputs), inputs

def right(program, *inputs):
    return {name}(program)(*inputs), inputs

def wrong(program, *inputs):
    return {name}(program, **{options!r})(*inputs), inputs
"""


def _accepts(inputs: Values) -> str:
    programs, arguments = inputs.graphs, inputs.arguments
    if len(programs) != 1 or programs[0] is not arguments[0]:
        return "Return a tuple: the program, then its inputs, as in `return program, x`."
    nodes = len(programs[0].graph.nodes)
    if nodes > MAX_NODES:
        return f"The program has {nodes} nodes; {MAX_NODES} are enough, input and output included."
    return ""


def trial(name: str, explain: Callable[[fx.GraphModule, Mapping[str, Any]], str], options: Mapping[str, Any]) -> Trial:
    """Return a question about a pass with a mistake; the question states the mistake."""
    return Trial(
        f"{name} with {', '.join(f'{k}={v!r}' for k, v in options.items())}",
        TEXT.format(name=name, options=options),
        question={"pass": name, **options},
        accepts=_accepts,
        explain=lambda inputs: explain(inputs.graphs[0], options),
        graphs=1,
        max_elements=4096,
        wrong="the pass",
        right="the same pass without its mistake",
    )


def _why_dead_code_is_right(program: fx.GraphModule, options: Mapping[str, Any]) -> str:
    missing = options["overlooks"]
    calls = [n for n in program.graph.nodes if n.target == missing]
    if not calls:
        return f"The one write that it does not know is {missing}, which is not called here."
    if all(call.users for call in calls):
        return f"The result of {missing} is read, so nobody takes the call for dead."
    return f"{missing} is erased, but nobody reads afterwards what it wrote to, or the numbers hide it."


SHARING = {
    "keywords": "Two calls have to differ in a keyword alone, as in alpha of torch.add; numbers by position count.",
    "numbers": "Two calls have to differ in a number by position alone, as in x * 2 and x * 3.",
    "order": "Two calls have to read the same two nodes in another order, where it matters, as in x - y and y - x.",
    "writes": "Two equal calls are needed, and an in-place call: between them on what they read, or later on a result.",
}


def _why_sharing_is_right(program: fx.GraphModule, options: Mapping[str, Any]) -> str:
    targets = [n.target for n in program.graph.nodes if n.op in ("call_function", "call_method")]
    if len(set(targets)) == len(targets):
        return "No two calls have the same target: there is nothing to share."
    return SHARING[options["overlooks"]]


def _why_folding_is_right(program: fx.GraphModule, options: Mapping[str, Any]) -> str:
    factors = [a for n in program.graph.nodes for a in n.args if type(a) in (int, float)]
    if not factors or max(factors) <= options["above"]:
        return f"It folds factors above {options['above']}; the program has none."
    return "Nothing was folded wrongly: the result of an nn.Linear has to be multiplied by that number."


def dead_code(count: int) -> Callable[[Draw], Sequence[Trial]]:
    """Return trials of passes that know all in-place methods except a random one."""
    return lambda draw: [
        trial("drop_dead_code", _why_dead_code_is_right, {"overlooks": method})
        for method in draw.sample(METHODS, count)
    ]


def sharing(*oversights: str) -> Callable[[Draw], Sequence[Trial]]:
    """Return trials of passes that overlook something when they compare calls."""
    return lambda draw: [trial("share_equal", _why_sharing_is_right, {"overlooks": o}) for o in oversights]


def folding(*lapses: str) -> Callable[[Draw], Sequence[Trial]]:
    """Return trials of passes with a mistake in folding a factor above a random number."""
    return lambda draw: [
        trial("fold_factor", _why_folding_is_right, {"forgets": lapse, "above": draw.integer(2, 50)})
        for lapse in lapses
    ]


EXERCISE = Exercise(
    title="Break three passes",
    kind=Kind.COUNTEREXAMPLE,
    entry_point="counterexample",
    points=8,
    wall_s=30,
    hints=(
        "For each mistake ask what the pass no longer sees, and write the smallest program in which that matters.",
        "Dead code: a write whose result nobody reads, to something that is read later. Sharing: two calls that differ "
        "in the overlooked thing only. Folding: a module with an nn.Linear whose result is multiplied by a number.",
        "`getattr(h, question['overlooks'])()` calls a method by its name while tracing; `above + 1` is a factor that "
        "is folded; two sums with alpha=2 and alpha=3 differ in a keyword.",
    ),
    checks=(
        Check("dead code with an unknown method", "dead code", 1.5, disproves(dead_code(2))),
        Check("sharing across keywords and writes", "sharing", 1.5, disproves(sharing("keywords", "writes"))),
        Check("folding without the bias", "folding", 1.5, disproves(folding("bias", "bias"))),
    ),
)
