"""Launches that Triton's interpreter runs and its compiler refuses, and the compiler's words about them."""

import textwrap
from pathlib import Path

import pytest
import torch

from course_lib.kernel_programs import compiler_check
from course_lib.kernel_programs.compiler_check import CompilerCheck
from course_lib.kernel_programs.compiler_words import plain

CHILD = compiler_check._CHILD
ENDED = "Triton does not compile `kernel`: its compiler ended without a result."
HEAD = "@triton.jit\ndef kernel(x_ptr, out_ptr, n, eps, BLOCK: tl.constexpr, OF: tl.constexpr = tl.float32):\n"
BODIES = {
    "right": """
        total = 0.0
        for start in range(0, n, BLOCK):
            total += tl.sum(tl.load(x_ptr + start + tl.arange(0, BLOCK), mask=start < n, other=0.0).to(OF), axis=0)
        if n > 3:
            total = twice(total) + SHIFT
        tl.store(out_ptr, total + eps)
        """,
    "a break": """
        for start in range(0, n, BLOCK):
            if start > 5:
                break
        """,
    "an integer that becomes a float": """
        total = 0
        for start in range(0, n, BLOCK):
            total += tl.sum(tl.load(x_ptr + start + tl.arange(0, BLOCK)), axis=0)
        """,
    "a number that becomes a block": """
        total = 0.0
        for start in range(0, n, BLOCK):
            total += tl.load(x_ptr + start + tl.arange(0, BLOCK))
        """,
    "a name of one branch": """
        if n > 3:
            total = 1.0
        tl.store(out_ptr, total)
        """,
    "two types of branches": """
        if n > 3:
            total = 1.0
        else:
            total = 1
        """,
    "another type in a branch": """
        total = tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0)
        if n > 3:
            total = n
        """,
    "two types of a choice": "tl.store(out_ptr, eps if n > 3 else n)",
    "the truth of a block": """
        if tl.arange(0, BLOCK) > 3:
            tl.store(out_ptr, 1.0)
        """,
    "a return in a loop": """
        for start in range(0, n, BLOCK):
            if start > 5:
                return
        """,
    "a block of 3": "tl.store(out_ptr + tl.arange(0, 3), 1.0)",
}
SAID = {
    "right": "",
    "a break": "line 11, `break`: a loop of a kernel has neither `break` nor `continue`.",
    "an integer that becomes a float": "`total` is int32 before the loop and becomes fp32 in it",
    "a number that becomes a block": "`total` is fp32 before the loop and becomes a block of 16 fp32 in it",
    "a name of one branch": "line 11, `tl.store(out_ptr, total)`: `total` may have no value here",
    "two types of branches": "`total` is fp32 in one branch of the `if` and int32 in the other.",
    "another type in a branch": "before the `if`",
    "two types of a choice": "have two types, fp32 and int32.",
    "the truth of a block": "a block of several elements has no truth value",
    "a return in a loop": "a kernel has no `return` in a loop.",
    "a block of 3": "arange's range must be a power of 2",
}


def text_of(name: str) -> str:
    helper = "SHIFT = tl.constexpr(3)\n\n@triton.jit\ndef twice(a):\n    return a + a\n\n"
    body = textwrap.indent(textwrap.dedent(BODIES[name]).strip(), "    ")
    return f"{helper}{HEAD}{body}\n\ndef launcher(x, dtype=torch.float32):\n    return x\n"


def refusal(name: str) -> str:
    out = torch.zeros(1)
    args = torch.ones(40), out, 40, 0.5
    check = CompilerCheck({"answer": text_of(name)})
    first, second = (check.refusal("kernel", args, {"BLOCK": 16, "num_warps": 2}) for _ in range(2))
    assert first == second
    return first


@pytest.mark.parametrize("name", BODIES)
def test_what_the_compiler_refuses_is_said_in_plain_words(name: str) -> None:
    said = refusal(name)
    assert SAID[name] in said
    assert bool(said) == (name != "right")
    assert not said or said.startswith("Triton does not compile `kernel`, line ")


def test_constants_of_a_launch_may_be_types_texts_and_kernels() -> None:
    text = (
        f"{text_of('right')}\n@triton.jit\ndef all_of(x_ptr, F: tl.constexpr, pair, none):\n    F(pair[0] + pair[1])\n"
    )
    import triton
    import triton.language as tl

    @triton.jit
    def twice(a):  # type: ignore[no-untyped-def]  # its name alone goes to the other process
        return a

    check = CompilerCheck({"answer": text})
    x = torch.ones(40, dtype=torch.float16)
    assert check.refusal("all_of", (x, twice, (1.0, 2), None), {}) == ""
    assert check.refusal("kernel", (x, x, 40, 0.5, tl.constexpr(16)), {"OF": tl.float16}) == ""
    assert "has no attribute" in check.refusal("kernel", (x, x, 40, 0.5, 16), {"OF": torch.float16})


def test_a_dtype_of_pytorch_equals_itself_and_no_text() -> None:
    body = "    tl.static_assert(D == E)\n    tl.static_assert(D != text)\n"
    head = "@triton.jit\ndef kernel(D: tl.constexpr, E: tl.constexpr, text: tl.constexpr):\n"
    check = CompilerCheck({"answer": head + body})
    assert check.refusal("kernel", (torch.float32, torch.float32, "torch.float32"), {}) == ""
    assert "D == E" in check.refusal("kernel", (torch.float32, torch.float16, "torch.float32"), {})


def test_without_a_compiler_nothing_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    x = torch.ones(2)
    silent = tmp_path / "child.py"
    monkeypatch.setattr(compiler_check, "_CHILD", silent)
    silent.write_text("from triton.backends import backends\nbackends.clear()\n" + Path(CHILD).read_text("utf-8"))
    check = CompilerCheck({"answer": text_of("a break")})
    assert not check.compiles
    assert check.refusal("kernel", (x, x, 1, 1.0), {"BLOCK": 2}) == ""
    assert "`BLOCK` is a tl.constexpr and gets a tensor" in check.refusal("kernel", (x, x, 1, 1.0, (1, x)), {})
    assert "ended without a result" in check.refusal("of no text", (), {})


@pytest.mark.parametrize("default", ["tl.arange(0, 16)", "1"])
def test_a_compiler_that_ends_on_a_text_refuses_its_launches(default: str) -> None:
    text = f"@triton.jit\ndef kernel(x_ptr, n: tl.constexpr, never: tl.constexpr = {default}):\n    pass\n"
    refused = CompilerCheck({"answer": text}).refusal("kernel", (torch.ones(2), 1), {})
    assert refused == ("" if default == "1" else ENDED)


def test_a_compiler_that_ends_refuses_this_launch_and_later_ones() -> None:
    check = CompilerCheck({"answer": text_of("right")})
    assert check.compiles
    check._child.kill()
    assert check.refusal("kernel", (), {}) == ENDED
    assert "ended without" in check.refusal("kernel", (), {})


def test_words_that_are_not_known_stay() -> None:
    assert plain("ValueError('no such\\nthing')") == "no such\\nthing"
    assert plain("Cannot cast") == "Cannot cast"
