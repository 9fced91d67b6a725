"""The small language of kernels: what it takes, and what it refuses with which words."""

import contextlib
import time

import pytest

from autograder.host.artifacts import kernel_source
from autograder.host.artifacts.kernel_source import checked_kernels
from autograder.host.artifacts.kernel_writing import KernelRefusedError

MOST_S = 4.0  # of processor time: a reader that looks at each pair of nodes takes longer

KERNEL = """
SCALE = tl.constexpr(2.0)

@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=-float("inf")).to(tl.float32)
    {line}
    tl.store(out_ptr + at, (x * SCALE).to(out_ptr.dtype.element_ty), mask=at < n)
"""
LAUNCHER = """
def double(x, factor=1.0):
    out = torch.empty_like(x)
    {line}
    double_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel(), BLOCK=128)
    return out
"""
IN_KERNELS = {
    "tl.core.load(x_ptr)": "`tl.core.load`",
    "print(x)": "`print`, which the answer's cell does not define",
    "x = x_ptr.__class__": "`x_ptr.__class__`",
    "x = x.handle.data": "`x.handle.data`",
    "x = tl": "`tl`",
    "x = np.load('file')": "`np.load`",
    "x = x if at else (lambda: x)()": "Lambdas are for the grid",
    "x = [i for i in range(3)]": "a kernel cannot have it",
    "import os": "a kernel cannot have it",
    "x = torch.exp(x)": "`torch.exp`",
    "x = math.ceil(x)": "`math.ceil`",
    "x = y = x": "one `=` a line",
    "x.T = x": "assigns to `x.T`",
    "x = tl.load(*[x_ptr])": "Write each argument by itself",
    "x = tl.load(**x)": "write each argument by its name",
    "__import__('os')": "`__import__`",
    "raise NotImplementedError": "If it is the stub",
    "x = x * FACTOR": "reads a plain global",
    "tl = 3": "take another name",
    "x = f'{x}'": "a kernel cannot have it",
    "x = [x]": "a list outside of a call",
    "for y in (x, x): x += y": "a loop goes over range",
    "x = double(x)": "add `@triton.jit`",
    "if isinstance(n, int): x += 1": "a number of the interpreter is a tensor",
    "if n is 0: x += 1": "compares with None only",
    "x = sum([x, x])": "`sum`, which the answer's cell does not define",
    "x = {0: x}[0]": "a kernel cannot have it",
}
KEPT = """
@triton.jit
def both(a, b):
    return a, b


@triton.jit
def kept(x_ptr, n, BLOCK: tl.constexpr):
    blocks = tl.zeros([BLOCK], tl.float32)
    for start in {loop}(0, n, BLOCK):
        x = tl.load(x_ptr + start + tl.arange(0, BLOCK))
        {line}
    tl.store(x_ptr, blocks)
"""
GROWTHS = {
    "blocks = (blocks, x)": "a tuple that is kept in a loop",
    "blocks = blocks + (x,)": "a tuple that is kept in a loop",
    "blocks, x = both((blocks, x), x)": "a tuple that is kept in a loop",
    "blocks = both(blocks, x)": "several results under one name in a loop",
    "blocks += tl.split(x)": "several results under one name in a loop",
    "kept(x_ptr, n - BLOCK, BLOCK)": "Triton compiles no recursion",
}
IN_LAUNCHERS = {
    "x = x.contiguous()": "copies or converts outside of the kernel",
    "out = torch.exp(x)": "`torch.exp`",
    "out._memory": "`out._memory`",
    "x = (lambda np: np)(x) + np": "`np`, which",
    "x = torch": "`torch`, which",
    "def grid(meta): pass": "Write a grid as `lambda meta",
    "raise NotImplementedError": "Otherwise raise `ValueError`",
    "raise KeyError('x')": "Otherwise raise `ValueError`",
    "[np for np in ()]; np": "`np`, which",
    "n = [0 for np in np]": "`np`, which",
    "n = [c for a in (1,) for c in (a,)] + [a]": "`a`, which",
    "n = (lambda a: [a for b in (a,)])(b)": "`b`, which",
    "n = [lambda a=a: a for b in (1,)]": "`a`, which",
    "x = F.gelu(x)": "`F.gelu`",
    "x = str('{0.__class__}').format(x)": ".format`, which is not there",
    "x = {'a': 1}.__class__": ".__class__`, which is not there",
    "x = dict(a=1).setdefault('b', [])": ".setdefault`, which is not there",
    "x = {**{'a': np}}": "`np`, which",
    "raise np": "cannot have it",
}


def text(in_kernel: str = "pass", in_launcher: str = "pass", top: str = "FACTOR = 3") -> str:
    """Return an answer with one line of its kernel, its launcher and its top filled in."""
    return top + KERNEL.format(line=in_kernel) + LAUNCHER.format(line=in_launcher)


def refusal(answer: str, refused: tuple[str, ...] = ()) -> str:
    """Return the message of the refusal."""
    with pytest.raises(KernelRefusedError) as caught:
        checked_kernels({"answer": answer}, refused)
    return str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "pass",
        "x = tl.where(x > 0, x, 0.0)",
        "for i in range(3):\n        x += i",
        "assert BLOCK > 1",
        "x = x.to(tl.float16)",
        "tl.assume(n > 0); tl.device_assert(n > 0, 'positive'); tl.static_print(n, x); tl.device_print('x', x)",
    ],
)
def test_ordinary_kernels_are_taken(line: str) -> None:
    checked = checked_kernels({"answer": text(line)})
    assert checked.launchers == {"double": ("x", "factor")}


@pytest.mark.parametrize(
    "line",
    [
        "assert x.ndim == 1, f'{x.shape}'",
        "out = x.new_empty(3)",
        "out = x.new_zeros(3)",
        "out = torch.full_like(x, 0.0, dtype=torch.float)",
        "out = torch.full(x.shape, -math.inf, device=x.device)",
        "out = torch.empty_strided(x.size(), x.stride(), dtype=torch.half)",
        "n = math.ceil(x.numel() / 128)",
        "assert isinstance(x, torch.Tensor)",
        "n = min(x.shape[0], 3)",
        "shape = (*x.shape,)",
        "x = torch.empty_like(x, memory_format=torch.contiguous_format)",
        "n = (lambda a, b=factor: lambda c: a + b + c)(1)(2)",
        "n = [a + b + c for a in x.shape for b in (a, 2) if b for c in (b,)]",
        "n = [lambda a, b=b: a + b + factor for b in x.shape]",
        "n: int = x.numel()",
        "if x.ndim != 1: raise ValueError(f'{x.shape}')",
        "if x.ndim != 1: raise RuntimeError()",
        "if x.ndim != 1: raise ValueError",
        'if x.ndim != 1: raise ValueError(f"{x.shape}: it\'s {str(x.dtype)!r}")',
        "options = {'BLOCK': 128}; double_kernel[(1,)](x, out, 3, **options)",
        "n = sum(list(x.shape)) + math.prod(x.shape[:-1])",
        "rows = n = x.shape[0]",
        "for i, (a, b) in enumerate(zip(x.shape, out.shape)): assert a == b, str(i)",
        "assert x.dtype in {torch.float16, torch.float32} and all(n > 0 for n in x.shape)",
        "out = x.new_full(x.shape, fill_value=0.0)",
        "def grid(meta: int) -> tuple:\n        'Return it.'\n        return (factor, meta)",
    ],
)
def test_ordinary_launchers_are_taken(line: str) -> None:
    assert checked_kernels({"answer": text(in_launcher=line)}).parts


@pytest.mark.parametrize(("line", "said"), IN_KERNELS.items())
def test_a_kernel_reaches_nothing_but_its_language(line: str, said: str) -> None:
    assert said in refusal(text(line))


@pytest.mark.parametrize(("line", "said"), IN_LAUNCHERS.items())
def test_a_launcher_reaches_nothing_but_shapes_and_launches(line: str, said: str) -> None:
    assert said in refusal(text(in_launcher=line))


@pytest.mark.parametrize(
    ("top", "said"),
    [
        ("@triton.jit(print)\ndef f(x):\n    pass", "only `@triton.jit`"),
        ("from torch import Size", "write `torch.Tensor`"),
        ("x = open('f')", "neither a function nor a constant"),
        ("import os", "Remove it: `tl`"),
        ("import math, os", "Remove it: `tl`"),
        ("@triton.autotune(configs=[], key=[])\n@triton.jit\ndef f(x):\n    pass", "only `@triton.jit`"),
        ("SEEN = [0]", "computed from something other"),
        ("SEEN = {}", "computed from something other"),
        ("T = 'a'\nU = (T, T)", "computed from something other"),
        ("U = (1, 1)\nV = (U, U)", "computed from something other"),
        ("N = 4\nN = (1, 2)\nM = N * 2", "computed from something other"),
        ("U = float(float)", "computed from something other"),
        ("U = math.exp(1000)", "range"),
        ("U = float('nan')", "no real number"),
        ("U = torch.empty", "computed from something other"),
        ("class A: pass", "neither a function nor a constant"),
        ("def f(x=exec('1')): pass", "`f`, line 1, has the default `exec('1')`"),
        ("def f(x, calls=[]): pass", "has the default `[]`"),
        ("def f(x, *, pair=(1, [])): pass", "has the default `(1, [])`"),
        ("@triton.jit\ndef f(x, at: tl.constexpr = tl.arange(0, 16)): pass", "has the default `tl.arange(0, 16)`"),
        ("@triton.jit\ndef f·of(x): pass", "the name `f·of`; write it with the letters a to z"),
        ("@triton.jit\ndef f(x, é): pass", "the name `é`"),
        ("def f(*x): pass", "each parameter by its name"),
        ("def f(np, x=np): pass", "`np`, which"),
        ("def f(np, x=lambda: np): pass", "has the default `lambda: np`"),
        ("def f(x):\n    return (lambda np=np: np)()", "`np`, which"),
        ("def f(x):\n    return lambda tl: tl.load", "take another name"),
        ("+".join(["1"] * 900), "nests deeper"),
    ],
)
def test_the_top_of_a_cell_has_functions_and_constants_only(top: str, said: str) -> None:
    assert said in refusal(text(top=top))


def test_what_does_the_task_by_itself_is_refused() -> None:
    assert "does this task by itself" in refusal(text("x = tl.softmax(x)"), ("tl.softmax",))
    assert checked_kernels({"answer": text("x = tl.softmax(x)")}).launchers


def test_options_for_the_compiler_are_taken() -> None:
    top = "@triton.jit(do_not_specialize=['n'], noinline=True)\ndef helper(x, n):\n    return x\nFACTOR = 3"
    assert checked_kernels({"answer": text("x = helper(x, n)", top=top)}).launchers


def test_constants_are_computed_of_others_before_the_text_runs() -> None:
    top = "import math\nfrom typing import Optional, Tuple\nFACTOR = 1024\nHALF: int = FACTOR // 2\nLOW = -float('inf')"
    top += "\nROOT = tl.constexpr(math.sqrt(2 / math.pi))\nSIZES = (HALF, -HALF)\nDTYPE = torch.float32"
    written = checked_kernels({"answer": text("x = x * ROOT", "n: Optional[int] = SIZES[0]", top=top)}).parts["answer"]
    assert "HALF = 512\nLOW = -1e309\nROOT = tl.constexpr(0.7978845608028654)\nSIZES = (512, -512)" in written


def test_the_usual_imports_are_taken_and_dropped() -> None:
    usual = "import torch\nimport triton\nimport triton.language as tl\nfrom triton import language as tl\nFACTOR = 3"
    usual += "\nimport torch, triton, math\nfrom __future__ import annotations"
    usual += "\nfrom torch import Tensor\nif __name__ == '__main__':\n    print(1)"
    assert checked_kernels({"answer": text(top=usual)}).launchers


@pytest.mark.parametrize(("line", "said"), GROWTHS.items(), ids=list(GROWTHS))
def test_nothing_grows_in_a_loop(line: str, said: str) -> None:
    with pytest.raises(KernelRefusedError, match=said):
        checked_kernels({"answer": KEPT.format(loop="range", line=line)})


@pytest.mark.parametrize(
    ("loop", "line"),
    [
        ("range", "blocks, x = both(blocks + x, x)"),
        ("range", "blocks = tl.reshape(blocks + x, (BLOCK,))"),
        ("range", "blocks = blocks + x[None, :]"),
        ("tl.static_range", "blocks = (blocks, x)"),
    ],
)
def test_blocks_in_names_and_unrolled_loops_are_taken(loop: str, line: str) -> None:
    checked_kernels({"answer": KEPT.format(loop=loop, line=line)})


@pytest.mark.parametrize("head", ["def f(x, D=torch.float32, ", "@triton.jit\ndef f(x, D: tl.constexpr = tl.float32, "])
def test_a_default_is_a_constant(head: str) -> None:
    defaults = "n=-1, eps=1 / 2, none=None, pair=(1, A), *, text='a', C=tl.constexpr(2)"
    checked_kernels({"answer": f"A = tl.constexpr(1)\n{head}{defaults}):\n    return x\n"})


def test_a_kernel_may_ask_whether_an_argument_is_none() -> None:
    checked_kernels({"answer": KERNEL.format(line="if n is not None: x += 1")})


def test_each_function_of_a_cell_has_one_definition() -> None:
    twice = KERNEL.format(line="x += 1") + KERNEL.format(line="x += 2")
    with pytest.raises(KernelRefusedError, match="`double_kernel` is defined twice in a cell"):
        checked_kernels({"answer": twice})


def test_no_word_of_the_language_gets_another_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_source, "written", lambda statements: "def f(x):\n    tl.cos = tl.sin")
    assert "`tl.cos` as a name for something else" in refusal("")


NAMES = [chr(0x4E00 + number) for number in range(9_000)]
LONG = {
    "many parameters of a lambda": f"def f(x):\n    g = lambda {','.join(NAMES)}: ({'1,' * 9_000})\n",
    "many lambdas": f"def f({','.join(NAMES)}):\n    return [{'lambda:x,' * 2_200}]\n",
    "lambdas in lambdas": f"def f(x):\n    return {'lambda x:' * 90}({'x,' * 18_000})\n",
    "long bases of attributes": f"def f(x):\n    return ({'x,' * 18_000}){'.shape' * 85}\n",
    "loops in loops": "@triton.jit\ndef f(x):\n"
    + "".join(f"{' ' * i}for i in range(x):\n" for i in range(1, 91))
    + f"{' ' * 91}b = ({'x,' * 15_000})\n",
}


@pytest.mark.parametrize("name", LONG)
def test_a_text_of_full_length_is_read_in_time_that_grows_with_its_length(name: str) -> None:
    assert 30_000 < len(LONG[name]) < 40_000
    started_s = time.process_time()
    with contextlib.suppress(KernelRefusedError):
        checked_kernels({"answer": LONG[name]})
    assert time.process_time() - started_s < MOST_S
