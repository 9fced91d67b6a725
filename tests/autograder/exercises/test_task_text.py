"""Texts that compile parts are read whole, and no text can name more than that takes."""

import time
from types import SimpleNamespace

import pytest

from autograder.exercises.programs.task_language.task_text import require_small_language
from autograder.exercises.registry import hidden_part
from autograder.host.exercise import AnswerRefusedError
from autograder.host.source_text import parsed


def read(text):
    require_small_language(SimpleNamespace(text=text))


LOOP = "def compile_task(task, backend):\n    for name, part in task.named_children():\n        {}\n    return task\n"
RIGHT = [each for each in hidden_part("16_compile_task").controls if each.marks]
TAKEN = (
    "part.forward = torch.compile(part.forward, backend=backend, dynamic=True)",
    "print(f'{name}: {type(part).__name__}')",
    "setattr(part, 'forward', torch.compile(getattr(task, name).forward, backend=backend))",
    "part.compile(backend=backend) if hasattr(part, 'compile') else None",
    "(lambda: getattr(task, name))().forward = torch.compile(part.forward, backend=backend)",
    "[setattr(task, n, torch.compile(m, backend='eager')) for n, m in list(task.named_children())]",
    "part.forward = torch.compile(part.forward, backend=backend) if type(part) == type(task) else part.forward",
    "part.forward = torch.compile(part.forward, backend=backend, mode=None, options=None)",
    "compiled = torch.compile(part.forward, backend=backend); part.forward = lambda input, f=compiled: f(input)",
    "seen = set(); seen.add(name); seen.update({name})",
    "vars = {}; vars[name] = part; id = len(vars); iter = map = id; min, max = sum, id",
    "max(map(len, [name])); min(filter(None, reversed([1, 2]))); sum(list(iter([abs(1.0)])))",
    "compile = lambda f: torch.compile(f, backend=backend); part.forward = compile(part.forward)",
    "predictions = part.training",
    "assert isinstance(part, nn.Module), name",
    "import torch; import lightning; from torch import nn; from torch.nn import functional as F",
    "import torch.nn as nn, torch.nn.functional as F",
    "torch._dynamo.reset()",
    "part.forward = torch.compile(backend=backend)(torch.compile(part.forward))",
    "count = 0\n        while True:\n            count += 1\n            if count < 2: continue\n            break",
    "def read(x):\n            @torch.compile\n            def run(*y): return y\n            return run",
)
REFUSED = {
    "an import": "import sys",
    "an import of the language": "__import__('sys')",
    "frames": "(lambda: 0).__globals__",
    "a name that begins so": "getattr(part, '__dict__')",
    "the frame of a generator": "getattr((x for x in ()), 'gi_frame')",
    "a name made of texts": "getattr(part, '_' + '_dict__')",
    "a name from another loop": "[getattr(part, text) for text in ['_' * 2 + 'dict__']]",
    "a name written over": "name = str(part); getattr(part, name)",
    "a parameter": "(lambda name: getattr(part, name))(str(part))",
    "a name with a prefix": "[getattr(part, n) for n, _ in task.named_modules(prefix='_')]",
    "a name with an argument": "[getattr(part, n) for n, _ in task.named_children('_')]",
    "a name of another module": "[getattr(part, n) for n, _ in part.named_children()]",
    "a name in a list": "[getattr(part, n) for [n, _] in task.named_children()]",
    "a part of a target": "[getattr(part, n) for n[0], _ in task.named_children()]",
    "the second of two names": "[getattr(part, n) for _, n in task.named_children()]",
    "a starred list": "getattr(*[part, '_' * 2], 'forward')",
    "getattr by another name": "find = getattr",
    "format": "'{0.__class__}'.format(part)",
    "an attribute of a class": "setattr(type(part), 'tolist', print)",
    "another attribute by its name": "getattr('{0.__class__}', 'format')(part)",
    "a called backend": "backend(part, [])",
    "a kept backend": "kept = backend",
    "a backend for another function": "print(backend)",
    "a module": "mine = torch",
    "another module of torch": "torch.serialization.os",
    "another function of torch": "torch._guards.CompileContext",
    "what Dynamo is set to": "torch._dynamo.config.suppress_errors = True",
    "another attribute": "part.extra = 1",
    "an addition in place": "part.weight.add_(1)",
    "a module by the method of a set": "part.add_module(name, task)",
    "the class of a method of a set": "set().add.__self__",
    "a class": "type('Mine', (), {})",
    "the class of a class": "type(type(part)).__name__",
    "a class that is kept": "kind = type(part)",
    "an object of a class": "type(part)()",
    "a forward of a class of torch": "torch.nn.Linear.forward = part",
    "another option": "torch.compile(part, options={})",
    "options of a dict": "torch.compile(part, **{})",
    "a backend of its own": "torch.compile(part, backend=part)",
    "a task of its own": "compile_task(part, None)",
    "a class statement": "class Mine: pass",
    "a global name": "global torch",
    "a name of the language": "eval('1')",
    "another name for a module": "torch = part",
    "a compiler by another name": "own = torch.compile; own(part.forward, options={'cpp.cxx': ('g++',)})",
    "a compiler that is handed on": "list(map(torch.compile, [part]))",
    "a method that compiles, by another name": "own = part.compile",
    "a method that compiles, by its name": "getattr(part, 'compile')(options={})",
    "an optimisation context by another name": "own = torch._dynamo.optimize",
    "a decorator that makes a backend": "\n        @torch._dynamo.optimize\n        def own(graph, inputs): pass",
    "options": "torch.compile(part, options={'trace.enabled': True})",
    "a mode": "torch.compile(part, mode=name)",
    "another import of the notebook": "import warnings",
    "an import that a variable hides": "from pathlib import Path; Path = Path or 1; Path(name).replace(name)",
    "another module by a name of the language": "import lightning as torch",
    "a module that imports more": "import torch.nn",
    "an import from this package": "from .torch import nn",
    "too deep": "+".join(["1"] * 900),
}


@pytest.mark.parametrize("control", RIGHT, ids=[each.name for each in RIGHT])
def test_answers_that_earn_points_are_read(control):
    read(control.answer)


@pytest.mark.parametrize("line", TAKEN)
def test_other_lines_that_compile_parts_are_read(line):
    read(LOOP.format(line))


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED)
def test_what_compiles_no_part_is_refused(line):
    with pytest.raises(AnswerRefusedError, match=r"line|read"):
        read(LOOP.format(line))


@pytest.mark.parametrize(
    "parameters", ["task, other", "*given", "task, *backend", "task, backend=None, x=0", "backend"]
)
def test_the_backend_has_its_name(parameters):
    with pytest.raises(AnswerRefusedError, match="two parameters"):
        read(f"def compile_task({parameters}):\n    return task\n")


WHOLE = LOOP.format("pass")
# A text, and the part of it that makes it wrong, with what would be right in its place.
OTHER_MEANINGS = {
    "a builtin that another function has": ("def f(eval):\n    pass\ndef g(x):\n    eval(x)\n", "eval(x)", "x"),
    "a builtin that a lambda has": ("def f(x):\n    (lambda eval: 0)(eval)\n", "(eval)", "(x)"),
    "a builtin as a default": ("def f(x):\n    def g(eval, y=eval): pass\n", "y=eval", "y=x"),
    "a builtin that the lambda of a default has": (
        "def f(x):\n    return lambda y=(lambda eval: 0): eval(x)\n",
        "eval(x)",
        "y(x)",
    ),
    "a builtin that is gone through": ("def f(x):\n    [0 for vars in vars(x)]\n", "vars(x)", "x"),
    "a builtin behind a comprehension": ("def f(x):\n    [0 for vars in x]\n    vars(x)\n", "vars(x)", "x"),
    "a builtin that decorates": ("def f(x):\n    @eval\n    def g(eval): pass\n", "@eval", "@x"),
    "a builtin until it is defined": ("def f(x=1): pass\ndef eval(): pass\n", "def eval", "def g"),
    "an import that another function has": (
        "def f(logging):\n    pass\ndef g():\n    logging\n",
        "    logging\n",
        "    pass\n",
    ),
    "a function that the reader takes for list": ("def list(y):\n    return y\n", "def list", "def g"),
    "another task": ("def other(task):\n    pass\ndef f(x):\n    other(x)\n", "other(x)", "pass"),
    "a comprehension's name": (
        "def other(n):\n    def read(x):\n        [0 for n, _ in task.named_children()]\n        getattr(x, n)\n",
        "getattr(x, n)",
        "pass",
    ),
    "another loop's name": (
        "def other(x):\n    for n, _ in task.named_children():\n        for n in x:\n            getattr(x, n)\n",
        "for n in x",
        "if n in x",
    ),
    "a function's name": (
        "def n():\n    pass\ndef other(x):\n    for n, _ in task.named_children():\n        getattr(x, n)\n",
        "def n",
        "def m",
    ),
}


@pytest.mark.parametrize(("text", "wrong", "right"), OTHER_MEANINGS.values(), ids=OTHER_MEANINGS)
def test_names_that_may_mean_something_else_are_refused(text, wrong, right):
    read(text.replace(wrong, right) + WHOLE)
    with pytest.raises(AnswerRefusedError):
        read(text + WHOLE)


HELPED = "{}\ndef compile_task(task, backend):\n    for part in task.children():\n        {}\n    return task\n"
HELPER = "def compile_part(part, backend): part.forward = torch.compile(part.forward, backend=backend)"
HELPERS = {
    "by place": (HELPER, "compile_part(part, backend)"),
    "by name": (HELPER, "compile_part(backend=backend, part=part)"),
    "by name only": ("def f(part, *, backend): part.compile(backend=backend)", "f(part, backend=backend)"),
    "the task, too": ("def f(task, backend): [getattr(task, n) for n, _ in task.named_children()]", "f(task, backend)"),
}
OTHER_HELPERS = {
    "another backend": (HELPER, "compile_part(part, part.forward)"),
    "no backend": ("def f(part, backend=print): part.compile(backend=backend)", "f(part)"),
    "a starred list": (HELPER, "compile_part(*[part, print])"),
    "a dict of arguments": (HELPER, "compile_part(part, **{'backend': print})"),
    "by another name": (HELPER, "f = compile_part; f(part, print)"),
    "handed on": (HELPER, "list(map(compile_part, [part], [print]))"),
    "at another place": ("def f(kept, backend=None): kept(part)", "f(backend, backend)"),
    "another parameter": ("def f(part, compiler): part.compile(backend=compiler)", "f(part, backend)"),
    "two of one name": (f"{HELPER}\ndef compile_part(part, kept): kept(part)", "compile_part(part, backend)"),
    "a variable of its name": (HELPER, "compile_part = lambda x, y: y; compile_part(part, backend)"),
    "a builtin elsewhere": ("def f(x):\n    def dict(backend): pass\n", "dict(backend=backend).get('backend')"),
    "a place only": ("def f(backend=1, /, **kept): return kept.get('backend')", "f(backend=backend)"),
    "a dict": ("def f(**backend): pass", "f(backend=backend)"),
    "a decorator": (
        f"def other(f): return lambda part, kept: kept(part)\n@other\n{HELPER}",
        "compile_part(part, backend)",
    ),
    "a lambda": ("def f(x): return lambda backend: 0", "pass"),
    "another task": ("def f(task): return [getattr(task, n) for n, _ in task.named_children()]", "f(part)"),
}


@pytest.mark.parametrize(("helper", "call"), HELPERS.values(), ids=HELPERS)
def test_functions_get_the_backend_by_its_name(helper, call):
    read(HELPED.format(helper, call))


@pytest.mark.parametrize(("helper", "call"), OTHER_HELPERS.values(), ids=OTHER_HELPERS)
def test_no_function_gets_another_backend_or_keeps_it(helper, call):
    with pytest.raises(AnswerRefusedError):
        read(HELPED.format(helper, call))


def test_a_name_of_another_modules_part_is_refused_with_what_to_write():
    with pytest.raises(AnswerRefusedError, match=r"for part in module\.children\(\): part\.forward = torch\.compile\("):
        read(LOOP.format("[setattr(task.model, n, part) for n, _ in task.model.named_children()]"))


def test_a_parameter_of_another_name_is_refused_with_the_right_name():
    with pytest.raises(AnswerRefusedError, match="gets the backend as its parameter backend"):
        read(HELPED.format(*OTHER_HELPERS["another parameter"]))


def test_an_entry_with_a_decorator_is_refused():
    with pytest.raises(AnswerRefusedError, match="no decorator"):
        read("def other(function):\n    pass\n@other\n" + WHOLE)


@pytest.mark.parametrize(
    "text",
    ["x = 1\n", "import os\n", "import warnings\n", "print(open)\n", "def f(x=__import__): pass\n", WHOLE, "def ("],
)
def test_nothing_runs_beside_the_functions(text):
    read(WHOLE)
    with pytest.raises(AnswerRefusedError):
        read(WHOLE + text)


def test_imports_of_the_set_up_cell_may_stand_above():
    read("import torch\nimport lightning\nfrom torch import nn\n" + WHOLE)


def cpu_s(function, text):
    times_s = []
    for _ in range(3):
        started_s = time.process_time()
        function(text)
        times_s.append(time.process_time() - started_s)
    return min(times_s)


def test_a_text_of_full_length_is_read_in_time_that_grows_with_its_length():
    names = ",".join(chr(0x4E00 + number) for number in range(4_900))
    text = f"def compile_task(task, backend):\n    return [lambda {names}: [{names}]]\n"
    assert 19_000 < len(text) < 20_000
    assert cpu_s(read, text) < 8 * cpu_s(parsed, text)  # 2 times; a union of sets for each name took 16
