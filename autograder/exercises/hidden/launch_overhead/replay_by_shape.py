"""Hidden checks and controls of exercise 15.2."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.launch_overhead.replay_by_shape import (
    Called,
    agree,
    alike,
    call_of,
    require_unchanged,
    size_of,
    steps_of,
)
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Control, HiddenPart
from autograder.host.kinds.analysis import AnalysisAnswer


def _require_shapes(answer: AnalysisAnswer, draw: Draw) -> None:
    rows = draw.integer(2, 5)
    columns = rows + draw.integer(1, 2)  # so that the turned shape is another
    same = ([rows, columns], [1, columns], [rows, columns + 1], [columns, rows])
    pairs = [*((shape, shape) for shape in same), ([rows, columns], [columns])]
    order = [each for _ in range(3) for each in draw.sample(range(len(pairs)), len(pairs))]
    called = Called(answer, draw, steps_of(draw), [call_of(draw, *pairs[each]) for each in order])
    for index in range(len(order)):
        called.require_equal(index, "Keep one graph for each shape of the inputs, and keep all of them.")
    called.require_replay()


def _require_state(answer: AnalysisAnswer, draw: Draw) -> None:
    rows, columns = size_of(draw)
    calls = [call_of(draw, *([each, columns],) * 2) for each in (rows, rows + 1) for _ in range(3)]
    called = Called(answer, draw, steps_of(draw, "count"), calls, equal=True)
    called.require_replay()
    for index in (1, 2, 4, 5):
        before, after = called.outputs[index - 1 : index + 1]
        if not agree(after, before + 1):
            raise CheckFailedError(
                "A function keeps a counter for each shape, made in the first call with this shape, and adds 1 in each "
                f"call. From call {index} to call {index + 1}, with equal inputs, the result does not grow by 1. Warm "
                "up before each capture, so that no state is made in it."
            )


def _each_shape(answer: AnalysisAnswer, draw: Draw) -> None:
    _require_shapes(answer, draw)
    _require_state(answer, draw)


def _kept(answer: AnalysisAnswer, draw: Draw) -> None:
    called = Called(answer, draw, steps_of(draw), alike(draw, 4))
    called.require_replay()
    for index, call in enumerate(called.machine.calls):
        if not agree(called.machine.later(call), call.output):
            raise CheckFailedError(
                f"The result of call {index + 1} was overwritten by a later call. Each replay writes the same memory: "
                "return a clone()."
            )
    require_unchanged(called)


def _looks_at_nothing(answer: AnalysisAnswer, draw: Draw) -> None:
    """Check that the launches of calls with equal inputs are right for inputs that differ."""
    called = Called(answer, draw, steps_of(draw), alike(draw, 1) * 4)
    called.require_replay()
    for index, output in enumerate(called.outputs):
        if not agree(output, called.expected(index)):
            raise CheckFailedError(
                f"Where all calls have equal inputs, call {index + 1} starts other launches, which are wrong for other "
                "inputs: the host looked at the numbers, as torch.equal and a branch on a tensor do. Each read waits "
                "for the device: copy without looking."
            )


ANSWERS = Answers(__name__)
COPIES = "for kept, new in zip(static, inputs, strict=True):\n            kept.copy_(new)"
CAPTURE = "with (graph := Graph()):\n            result = function(*static)"
TRACED = (
    "from torch.fx.experimental.proxy_tensor import make_fx\n        graph, result = make_fx(function)(*static), None"
)
EAGER_ON_STATIC = """\
def replayed(function):
    known = {}

    def call(*inputs):
        static = known.setdefault(tuple(each.shape for each in inputs), [each.clone() for each in inputs])
        for kept, new in zip(static, inputs, strict=True):
            kept.copy_(new)
        return function(*static)

    return call
"""
EAGER_IN_A_CLASS = """\
class Graphs:
    def __init__(self, function):
        self.function = function

    def __call__(self, *inputs):
        return self.function(*(each.clone() for each in inputs)).clone()


def replayed(function):
    return Graphs(function)
"""
HIDDEN = HiddenPart(
    checks=(
        Check("a graph for each shape", "shapes", 2, _each_shape),
        Check("results and inputs stay", "results", 1.5, _kept),
        Check("no launch depends on a number", "host reads", 1, _looks_at_nothing),
    ),
    controls=(
        ANSWERS.reference(10),
        *ANSWERS.styles(10),
        ANSWERS.edited("dtypes in the key", 10, ("each.shape for", "(each.shape, each.dtype) for")),
        ANSWERS.edited("a detached clone", 10, ("result.clone()", "result.detach().clone()")),
        Control("eager in a class", EAGER_IN_A_CLASS, 0),
        Control("eager", "def replayed(function):\n    return function\n", 0),
        Control("eager on static tensors", EAGER_ON_STATIC, 0),
        ANSWERS.edited("no replay", 0, ("        graph.replay()\n", "")),
        ANSWERS.edited("no warm-up", 0, ("with warm_up():\n            function(*static)", "")),
        ANSWERS.edited("names bound to the inputs", 3, (COPIES, "static[:] = inputs")),
        ANSWERS.edited("first input only", 3, (COPIES, "static[0].copy_(inputs[0])")),
        ANSWERS.edited("captures in each call", 0, ("if shapes not in known:", "if True:")),
        ANSWERS.edited(
            "the last shape only",
            8,
            ("known[shapes] = captured", "known.clear()\n            known[shapes] = captured"),
        ),
        ANSWERS.edited("shape of the first input", 8, ("tuple((each.shape for each in inputs))", "inputs[0].shape")),
        ANSWERS.edited("one graph for all", 8, ("tuple((each.shape for each in inputs))", "len(inputs)")),
        ANSWERS.edited("rows in the key", 8, ("each.shape for", "len(each) for")),
        ANSWERS.edited("numbers of elements in the key", 8, ("each.shape for", "each.numel() for")),
        ANSWERS.edited(
            "looks at lists before it copies",
            9,
            ("kept.copy_(new)", "if kept.tolist() != new.tolist():\n                kept.copy_(new)"),
        ),
        ANSWERS.edited("no clone of the result", 8.5, ("return result.clone()", "return result")),
        ANSWERS.edited("the caller's tensors are static", 7, ("each.clone() for each", "each for each")),
        ANSWERS.edited("random state after the warm-up", 7, ("torch.set_rng_state(random_state)", "pass")),
        ANSWERS.edited("one seed for all calls", 7, ("graph.replay()", "torch.manual_seed(0)\n        graph.replay()")),
        ANSWERS.edited(
            "looks before it copies",
            9,
            ("kept.copy_(new)", "if not torch.equal(kept, new):\n                kept.copy_(new)"),
        ),
        ANSWERS.edited(
            "compares before it copies",
            9,
            ("kept.copy_(new)", "if (kept != new).any():\n                kept.copy_(new)"),
        ),
        ANSWERS.edited(
            "warms up once",
            8,
            ("        function(*static)\n        torch", "        known or function(*static)\n        torch"),
        ),
        ANSWERS.edited("traced by make_fx", 0, (CAPTURE, TRACED), ("graph.replay()", "result = graph(*static)")),
    ),
    equivalent={
        "True -> False": "strict is for the writer: a function always has as many inputs",
        "zip(static, inputs, strict=True) -> zip(static, inputs)": "as above",
    },
)
