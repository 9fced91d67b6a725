"""Texts of operators that a clean worker may run are told from those that reach further."""

import ast
import contextlib
import copy
import time

import pytest

from autograder.host.artifacts.operator_source import NODES, OperatorTextRefusedError, checked_operator_text

F_STRING = r"y = f'\'; x = 2 #{x}\"{x}\'\'\'{x}\"\"\"z'"
"""One with each kind of quotes between its braces, which Python 3.11.2 writes so that `x = 2` is code."""

RIGHT = '''
import torch
from torch.nn import functional as F


def launcher(name):
    return globals()[name]


@torch.library.custom_op("lesson11::gate", mutates_args=())
def gate(x: torch.Tensor, p: float = 0.5) -> torch.Tensor:
    """Return it."""
    first, *others = [each for each in x.chunk(2, -1)]
    total = -first if not others else F.silu(first) * others[0][..., :3]
    for number, row in enumerate(x):
        total += row.sum() * number
    with torch.no_grad():
        assert len(others) < 3 and x.dim() > 0, f"{x.shape}"
    return launcher("gate")(x) if triton_runs_on(x) else total.contiguous()


gate.register_fake(lambda x, p=0.5: x.new_empty(*x.shape[:-1], x.shape[-1] // 2))


def save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:1])
    ctx.rest = {"p": inputs[1], "more": {1, 2}}


def backward(ctx, g):
    (x,), p = ctx.saved_tensors, ctx.rest["p"]
    s = torch.sigmoid(x)
    return torch.cat([g * s, torch.ops.aten.silu_backward(g, x)], dim=-1) / p, None


gate.register_autograd(backward, setup_context=save)
'''


def test_statements_stay_in_their_lines_and_what_the_worker_gives_is_left_out():
    lines = checked_operator_text(RIGHT).split("\n")
    before = RIGHT.split("\n")
    number = next(i for i, line in enumerate(before) if line.startswith("gate.register_autograd"))
    assert lines[number] == before[number]
    assert "globals" not in "\n".join(lines)
    assert checked_operator_text("\n".join(lines)) == "\n".join(lines)


def positions(tree):
    """Yield copies of the tree, each with one expression replaced by one that reaches Python's own classes."""
    places = [
        (number, field, at)
        for number, node in enumerate(ast.walk(tree))
        for field, value in ast.iter_fields(node)
        for at, each in (enumerate(value) if isinstance(value, list) else [(None, value)])
        if isinstance(each, ast.expr)
        and isinstance(getattr(each, "ctx", ast.Load()), ast.Load)
        and not isinstance(node, ast.JoinedStr)  # its values are texts and formatted expressions alone
    ]
    for number, field, at in places:
        other = copy.deepcopy(tree)
        node = list(ast.walk(other))[number]
        marker = ast.parse("().__class__", mode="eval").body
        if at is None:
            setattr(node, field, marker)
        else:
            getattr(node, field)[at] = marker
        yield ast.unparse(ast.fix_missing_locations(other))


def test_an_expression_in_any_place_is_looked_at():
    (launcher,) = (n for n in ast.parse(RIGHT).body if getattr(n, "name", "") == "launcher")
    tree = ast.parse(RIGHT)
    tree.body = [each for each in tree.body if ast.unparse(each) != ast.unparse(launcher)]
    texts = list(positions(tree))
    assert len(texts) > 150
    assert [text for text in texts if not refused(text)] == []


def refused(text):
    try:
        checked_operator_text(text)
    except OperatorTextRefusedError as error:
        return str(error)
    return ""


def test_no_other_kind_of_node_is_read():
    kinds = [k for k in vars(ast).values() if isinstance(k, type) and issubclass(k, ast.stmt | ast.expr)]
    read = {kind.__name__ for kind in kinds if issubclass(kind, NODES) and kind not in (ast.stmt, ast.expr)}
    for unread in (
        "Import",
        "ImportFrom",
        "ClassDef",
        "Try",
        "Global",
        "Delete",
        "Yield",
        "Await",
        "NamedExpr",
        "Match",
    ):
        assert unread not in read


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "x = print(1)",
        "def f():\n    print(1)",
        "from typing import List, Literal",
        "import math, os",
        "t = torch",
        "t = [torch.ops]",
        "t = torch.sys.modules",
        "t = torch._C",
        "t = torch.load('x')",
        "t = torch.ops.load_library('x')",
        "t = F.torch.sys",
        "t = math.__loader__",
        "x = (i for i in [1]).gi_frame",
        "def f(t):\n    return t.sys\nf(1)",
        "def f(t):\n    t.sys = 1\n    return t.sys\nf(1)",
        "def f(t):\n    t.m = 1\n    return t.m\nf(1)\ngate.register_autograd(f)\ngate = 1",
        "def f(t):\n    t.gi_frame = 1\ngate = 1\ngate.register_autograd(f)",
        "def f(t):\n    t = (i for i in [1])\n    t.kept = 1\ngate = 1\ngate.register_autograd(f)",
        "'{0.__class__}'.format(1)",
        "torch = 1",
        "def custom_op(x):\n    return x",
        "lambda F: F.x",
        "c = custom_op",
        "c = torch.library.custom_op",
        "custom_op('aten::relu', mutates_args=())",
        "custom_op('les' 'son', mutates_args=())",
        "name = 'lesson11::x'\ncustom_op(name, mutates_args=())",
        "library = torch.library.Library('aten', 'IMPL')",
        "library = torch.library.Library('lesson11', 'DEF')\nlibrary.impl('x', len, 'Autograd')",
        "library = torch.library.Library('lesson11', 'DEF')\nlibrary.impl('x', len, 'CompositeImplicitAutograd')",
        "library = torch.library.Library('lesson11', 'DEF')\nlibrary.impl('x', len, dispatch_key='Autograd')",
        "library = torch.library.Library('lesson11', 'DEF')\nkey = 'Autograd'\nlibrary.impl('x', len, key)",
        "library = torch.library.Library('lesson11', 'DEF')\ni = library.impl",
        "library = torch.library.Library('lesson11', 'DEF')\nlibrary.m.impl('x')",
        "torch.library.impl('lesson11::x', 'Autograd', len)",
        "class A:\n    pass",
        "import os",
        "def f():\n    import os",
        "try:\n    pass\nexcept ValueError as e:\n    e.__traceback__",
        "x = 1\n" * 40_000,
    ],
)
def test_a_text_that_reaches_further_is_refused(text):
    assert refused(text)


def test_a_refusal_names_the_line():
    assert "line 3: `os.system`" in refused("x = 1\n\nx = os.system('ls')") or "line 3: `os`" in refused("\n\nx = os")


@pytest.mark.parametrize(
    "inside",
    [
        "def deeper(ctx):\n        return ctx.node\n    ctx.node = deeper",
        "ctx.node = lambda ctx: ctx.node",
        "def ctx():\n        return 1\n    ctx.node = 1",
        "def deeper(*ctx):\n        return ctx.node\n    ctx.node = deeper",
        "ctx.node = [ctx.node for ctx in inputs]",
    ],
)
def test_a_context_is_no_name_that_anything_else_has(inside):
    line = 'ctx.rest = {"p": inputs[1], "more": {1, 2}}'
    assert line in RIGHT
    assert not refused(RIGHT.replace(line, f"{line}\n    ctx.node = 1"))
    assert "an attribute is set only of `ctx`" in refused(RIGHT.replace(line, f"{line}\n    {inside}"))


@pytest.mark.parametrize("attribute", ["register_autograd", "register_more", "save_for_backward", "impl"])
def test_what_registers_or_every_context_has_is_not_set(attribute):
    line = "ctx.save_for_backward(*inputs[:1])"
    assert "an attribute is set only of `ctx`" in refused(RIGHT.replace(line, f"{line}\n    ctx.{attribute} = len"))
    assert not refused(RIGHT.replace(line, f"{line}\n    ctx.eps = len"))


@pytest.mark.parametrize(
    "call",
    [
        "def run(gate):\n    gate.register_autograd(patch)",
        "if True:\n    gate.register_autograd(patch)",
        "[gate][0].register_autograd(patch)",
        "other = gate\nother.register_autograd(patch)",
        "gate = [1]\ngate.register_autograd(patch)",
        "class_.register_autograd(patch)",
        "gate.register_autograd(patch)\npatch(torch.Tensor)",
    ],
)
def test_only_an_operator_at_the_left_margin_gives_a_context_to_what_the_text_does_not_call(call):
    patch = "def patch(z):\n    z.kept = len\n\n\nclass_ = [1]\n"
    assert not refused(f"{RIGHT}{patch}gate.register_autograd(patch)\n")
    assert "an attribute is set only of `ctx`" in refused(f"{RIGHT}{patch}{call}\n")


@pytest.mark.parametrize(
    "operator",
    [
        "@custom_op('lesson11::o', mutates_args=())\ndef o(x: Tensor) -> Tensor:\n    return x",
        "def o(x: Tensor) -> Tensor:\n    return x\no = custom_op('lesson11::o', o, mutates_args=())",
        "o = torch.library.custom_op('lesson11::o', mutates_args=())(lambda x: x)",
    ],
)
def test_an_operator_made_in_another_way_gives_contexts_too(operator):
    assert not refused(f"{operator}\ndef save(ctx, inputs, output):\n    ctx.kept = 1\no.register_autograd(save)")


def test_a_function_that_an_operator_calls_itself_has_no_context():
    decorated = RIGHT.replace(
        "def save(ctx", '@torch.library.custom_op("lesson11::save", mutates_args=())\ndef save(ctx'
    )
    assert "an attribute is set only of `ctx`" in refused(decorated)


@pytest.mark.parametrize(
    "annotation",
    [
        "torch.Tensor", "Tensor", "int", "float", "bool", "str", "None", "list[int]", "tuple[torch.Tensor, ...]",
        "Optional[Tensor]", "Sequence[int] | None", "Union[int, float]", "List[Tuple[int, int]]", "Own", "Any",
        "'torch.Tensor'", "list['torch.Tensor']", "'list[int] | None'",
    ],
)  # fmt: skip
def test_an_annotation_is_of_types_and_no_text(annotation):
    text = f"Own = torch.Tensor\ndef f(x: {annotation}, *more: {annotation}) -> {annotation}:\n    n: {annotation} = x"
    written = ast.parse(checked_operator_text(text))
    assert not [n for n in ast.walk(written) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    assert ast.unparse(written.body[1].returns) == annotation.replace("'", "")


@pytest.mark.parametrize(
    "annotation",
    [
        "'1 // 0'", "list['1 // 0']", "'(torch.Tensor,)[0]'", "1 // 0", "(int := 3)", "'''torch.Tensor\n'''", "f'{1}'",
        "()", "'int int'", "Other", "Twice", "b'int'", "torch.dtype", r"'\\x69nt()'", "[x for x in 'int']", "len",
        "Tensor['int', '__import__']", "lambda: int", "'\"int\"'", "Items[...]", "Items",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["x: {}", "*x: {}", "**x: {}", "*, x: {}", "x: {}, /"])
def test_any_other_annotation_is_refused(annotation, place):
    text = "Items = {{...: '1 // 0'}}\nItems[0] = int\n"
    text += "Other = '1 // 0'\nTwice = torch.Tensor\nfor Twice in ['1']:\n    pass\ndef f({}){}:\n    pass"
    assert "an annotation that is not read" in refused(text.format(place.format(annotation), ""))
    assert "an annotation that is not read" in refused(text.format("", f" -> {annotation}"))


@pytest.mark.parametrize("word", ["Tensor", "int", "str", "list", "Optional"])
def test_no_word_of_annotations_gets_another_meaning(word):
    assert "take another name" in refused(f"{word} = '1 // 0'")
    assert "take another name" in refused(f"def {word}():\n    pass")


def test_an_f_string_is_written_as_the_same_program_or_refused():
    text = f"x = 1\n{F_STRING}"
    with contextlib.suppress(OperatorTextRefusedError):
        assert ast.dump(ast.parse(checked_operator_text(text))) == ast.dump(ast.parse(text))


def test_usual_lines_that_do_nothing_are_left_out():
    usual = "from __future__ import annotations\nimport torch.library\nfrom typing import Optional\nx = divmod(7, 2)\n"
    written = checked_operator_text(f"{usual}if __name__ == '__main__':\n    print(x)\n")
    assert written == "\n\n\nx = divmod(7, 2)"
    assert checked_operator_text("def f(x):\n    return torch.special.expit(x)")
    assert checked_operator_text("from typing import Any, List, Tuple\nimport math, torch\nx = 1") == "\n\nx = 1"
    assert checked_operator_text("x = 1\nprint(x)\ntorch.library.opcheck(x, (torch.randn(3),))") == "x = 1"
    assert checked_operator_text("from torch import nn\ndef f(x):\n    return nn.functional.silu(x)")
    assert refused("t = torch.special")


def test_an_operator_may_refuse_its_arguments():
    checked_operator_text("def f(x):\n    torch._check(x.dim() > 0, lambda: 'no')\n    raise TypeError('odd')")


MOST_S = 4.0  # of processor time: a reader that looks at each pair of nodes takes longer
NAMES = [chr(0x4E00 + number) for number in range(9_000)]
LONG = {
    "parameters that are read": f"def f({','.join(NAMES)}):\n    return [{','.join(NAMES)}]\n",
    "functions in functions": "x = 1\n"
    + "".join(f"{' ' * i}def f{i}(a):\n" for i in range(45))
    + f"{' ' * 45}return [{'a,' * 15_000}]\n"
    + "".join(f"x.register_autograd(f{i})\n" for i in range(45)),
    "long bases of attributes": f"def f(a):\n    return ({'a,' * 18_000}){'.shape' * 85}\n",
    "operators of aten": f"x = [{'torch.ops.aten.add,' * 2_000}]\n",
    "a name for an annotation": f"T = Union[{'int,' * 2_000}]\ndef f({':T,'.join(NAMES[:6_000])}): pass\n",
}


@pytest.mark.parametrize("name", LONG)
def test_a_text_of_full_length_is_read_in_time_that_grows_with_its_length(name):
    assert 30_000 < len(LONG[name]) < 40_000
    started_s = time.process_time()
    refused(LONG[name])
    assert time.process_time() - started_s < MOST_S
