"""No function that students install is an answer on tensors or graphs when it is pasted into the answer's cell.

Each function of a visible module is the answer once. `TENSORS` has what somebody may write around some of them.
WHOLE=1 tries all exercises.
"""

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import autograder
from autograder.exercises import all_exercises, find
from autograder.exercises.attention import online_softmax
from autograder.exercises.lessons import LESSONS, exercise_files
from autograder.host.exercise import Kind
from tests.autograder.exercises.judged import judged, reference
from tests.autograder.exercises.test_pasted_functions import functions_of
from tests.drawn import some

PACKAGE = Path(autograder.__file__).parent
OPEN = ("programs", *LESSONS.values())  # folders of modules whose functions somebody may paste

# How functions of a visible module become an answer on tensors, and the points that they may earn.
TENSORS = [
    (
        "01_scaled_dot_product",
        "def scaled_dot_product(query, key, value, mask=None, dropout_p=0.0):\n"
        "    _, probabilities = attention(query, key, value, mask)\n"
        "    probabilities = F.dropout(probabilities, dropout_p)\n"
        "    return probabilities @ value, probabilities\n",
        0,
    ),
    (
        "01_mlm_batches",
        reference("01_mlm_batches").partition("def masked_loss")[0] + "masked_loss = loss\n",
        6.5,  # for `mask_tokens`
    ),
    (
        "01_multi_head_attention",
        "class MultiHeadAttention(nn.Module):\n"
        "    def __init__(self, size, heads):\n        super().__init__()\n        self.heads = heads\n"
        "        for name in LAYERS:\n            setattr(self, name, nn.Linear(size, size))\n"
        "    def forward(self, hidden, mask=None):\n"
        "        return attention(dict(self.named_parameters()), self.heads)(hidden, mask)\n",
        0,  # the library's attention is not there
    ),
    (
        "03_bias_gelu_script",
        "def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:\n    return gelu(x + bias)\n"
        "def bias_gelu_backward(grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor):\n"
        "    by_x = _slope(x + bias) * grad\n    return by_x, by_x.sum_to_size(bias.shape)\n",
        0,
    ),
    (
        "03_make_it_scriptable",
        "class Module(nn.Module):\n"
        "    def __init__(self, width, depth):\n        super().__init__()\n"
        "        self.dense, self.recall = nn.Linear(width, width), Recall({}, depth)\n"
        "    def forward(self, x: Tensor, mask: Tensor | None = None, scale: float = 1.0, fresh: bool = False):\n"
        "        self.recall.state = {'dense.weight': self.dense.weight, 'dense.bias': self.dense.bias}\n"
        "        return self.recall(x, mask, scale=scale, fresh=fresh)\n"
        "make_recall = Module\n",
        0,
    ),
    (
        "07_break_dynamo",
        "def broken():\n    return {'unrolled': _unrolled, 'softened': _softened, 'chosen': _chosen}\n",
        0,
    ),
    (
        "07_remove_breaks",
        "def repaired():\n    return {f.__name__: f for f in (report, rescale, branch, normalise, area, limit)}\n",
        1.5,  # `area` is one call of PyTorch, and a right answer
    ),
    (
        "07_tame_recompiles",
        "def tamed():\n    return {f.__name__: f for f in (pair_means, decayed_sum, faded)} | {'plan': known_plan}\n",
        2,  # `faded` is the formula of the task
    ),
    ("08_backward_by_hand", "backward = truth\n", 0),
    (
        "08_decompose",
        "def decomposed():\n    return {'layer_norm': lambda x, w, b: _normed(x, w, b), 'gelu': lambda x: gelu(x)}\n",
        0,
    ),
    (
        "08_functionalise",
        "def functional():\n"
        "    every = (first_column, through_a_view, input_changed, accumulated, nested)\n"
        "    return {f.__name__: f for f in every}\n",
        0,
    ),
    (
        "09_blocker_hunt",
        "def hunted():\n    return {f.__name__: f for f in (reported, appended, turned, spread, standardised)}\n",
        1.2,  # `reported` is the program of the task without its print
    ),
    (
        "09_reach_byte_minimum",
        "def lean():\n    return {f.__name__: f for f in (soften, mix, shares, scores)}\n",
        0,
    ),
    (
        "11_correct_operator",
        "schema = '(Tensor x) -> Tensor'\n"
        "operator = torch.library.custom_op('lesson11::silu_gate', silu_gate, mutates_args=(), schema=schema)\n"
        "operator.register_fake(lambda x: x.new_empty(half_shape(x)))\n",
        0,  # such a text holds more than operators
    ),
    (
        "12_block_end_operator",
        "schema = 'Tensor x, Tensor bias, Tensor residual, Tensor weight, Tensor shift, float p, int seed, float eps'\n"
        "schema = f'({schema}) -> (Tensor, Tensor)'\n"
        "torch.library.custom_op('lesson12::add_norm', block_end, mutates_args=(), schema=schema)\n",
        0,
    ),
    (
        "13_tiled_attention",
        "def tiled():\n"
        "    def both(causal):\n"
        "        def backward(grad, query, key, value, *_):\n"
        "            by_scores = _by_scores(grad, query, key, value, causal=causal)\n"
        "            return by_scores @ key, by_scores.mT @ query, by_scores.mT @ grad\n"
        "        forward = lambda *args: attention(*args, causal=causal)\n"
        "        return {'forward': forward, 'backward': backward}\n"
        "    return both(False) | {f'causal_{name}': f for name, f in both(True).items()}\n",
        0,
    ),
    (
        "13_score_mods",
        "def modifications():\n"
        "    tables = {name: vars(each).values() for name, each in MODIFICATIONS.items()}\n"
        "    return {name: [each for each in table if callable(each)][-1] for name, table in tables.items()}\n",
        0,
    ),
    (
        "14_export_open",
        "class Pasted(nn.Module):\n    def forward(self, x, table):\n        return positions(x, table)\n"
        "def exporters():\n"
        "    sizes = {0: Dim('batch', max=64), 1: Dim('length', min=2, max=128)}\n"
        "    return {'positions': lambda *given: export(Pasted(), given, dynamic_shapes=(sizes, None))}\n",
        0,
    ),
    (
        "14_repair_exports",
        "class Pasted(nn.Module):\n"
        "    def __init__(self, function):\n        super().__init__()\n        self.function = function\n"
        "    def forward(self, *given):\n        return self.function(*given)\n"
        "def repaired():\n"
        "    named = {'gate': gate, 'smooth': smooth, 'first': first, 'running': after([])}\n"
        "    return {name: lambda *given, f=f: export(Pasted(f), given) for name, f in named.items()}\n",
        0,
    ),
]


class Untyped(ast.NodeTransformer):
    """Put `object` in the place of types that name something missing."""

    def __init__(self, missing: set[str]) -> None:
        self._missing = missing

    def visit(self, node: ast.AST) -> ast.AST:
        """Look at the type of a field or parameter, and at that of a result."""
        for name in ("annotation", "returns"):
            if (told := getattr(node, name, None)) and self._missing & names_in(told):
                setattr(node, name, ast.Name("object"))
        return self.generic_visit(node)


def names_in(node: ast.AST) -> set[str]:
    """Return the names that a piece of code reads or writes."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def modules_of(path: Path) -> list[ast.Module]:
    """Return a visible module, behind the modules of exercises and programs that it imports from."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    named = [each for each in module.body if isinstance(each, ast.ImportFrom)]
    found = [name for each in named for name in (each.module, *(f"{each.module}.{a.name}" for a in each.names))]
    files = [PACKAGE.parent.joinpath(*str(name).split(".")).with_suffix(".py") for name in found]
    open_ones = [file for file in files if file.is_file() and file.parent.name in OPEN]
    return [*(each for file in dict.fromkeys(open_ones) for each in modules_of(file)), module]


def without_the_grader(exercise_id: str) -> str:
    """Return what of a visible module runs where nothing of the grader can be imported."""
    missing, defined = {"known_plan"}, set[str]()
    kept = []
    for module in modules_of(exercise_files()[exercise_id]):
        imports = [each for each in module.body if isinstance(each, ast.ImportFrom)]
        of_grader = [each for each in imports if str(each.module).startswith("autograder")]
        missing |= {alias.asname or alias.name for each in of_grader for alias in each.names} - defined
        Untyped(missing).visit(module)
        for statement in module.body:
            if statement in of_grader:
                continue
            targets = [getattr(statement, "target", statement), *getattr(statement, "targets", [])]
            names = {str(getattr(each, "id", getattr(each, "name", ""))) for each in targets}
            if missing & names_in(statement):
                missing |= names
            else:
                defined |= names
                kept.append(ast.unparse(statement))
    return "\n".join([*kept, "known_plan = dict"])


@pytest.mark.parametrize(("exercise_id", "pasted", "most"), some(TENSORS, 1, name="tensors"))
def test_a_reference_on_tensors_is_no_answer(exercise_id, pasted, most):
    assert judged(exercise_id, f"{without_the_grader(exercise_id)}\n\n{pasted}").points == most


OTHERS = [each for each in all_exercises() if find(each).kind not in (Kind.VALUE, Kind.ANALYSIS)]


@pytest.mark.parametrize("exercise_id", some(OTHERS, 2, name="formulas"))
def test_no_single_function_or_class_is_an_answer(exercise_id):
    text, entry = without_the_grader(exercise_id), find(exercise_id).entry_point
    defined = [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    answers = {each.name: f"{text}\n\n{entry} = {each.name}\n" for each in defined}

    earned = {name: judged(exercise_id, answer).points for name, answer in answers.items()}
    assert {name: points for name, points in earned.items() if points} == {}


def test_no_formula_on_a_stream_goes_from_block_to_block_as_an_answer_does():
    named = [each for each in functions_of(online_softmax) if each.__annotations__.get("return") is torch.Tensor]
    formulas = {each.__name__: ast.walk(parsed(each)) for each in named}

    assert {"weighted", "_upside_down"} <= formulas.keys()
    assert [name for name, nodes in formulas.items() if any(isinstance(node, ast.For) for node in nodes)] == []


def parsed(function: Callable[..., Any]) -> ast.Module:
    """Return the code of a function that is no lambda."""
    return ast.parse(inspect.getsource(function))
