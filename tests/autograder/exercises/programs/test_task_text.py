"""Texts that compile parts are read whole, and no text can name more than that takes."""

import time
from types import SimpleNamespace

import pytest

from autograder.exercises.programs.task_text import require_small_language
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
    "a builtin": ("def other(eval):\n    pass\n", "eval", "value"),
    "an import": ("def other(logging):\n    pass\n", "logging", "value"),
    "another task": ("def other(task):\n    pass\n", "task", "value"),
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


def test_an_entry_with_a_decorator_is_refused():
    with pytest.raises(AnswerRefusedError, match="no decorator"):
        read("def other(function):\n    pass\n@other\n" + WHOLE)


@pytest.mark.parametrize(
    "text", ["x = 1\n", "import os\n", "print(open)\n", "def f(x=__import__): pass\n", WHOLE, "def ("]
)
def test_nothing_runs_beside_the_functions(text):
    read(WHOLE)
    with pytest.raises(AnswerRefusedError):
        read(WHOLE + text)


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
