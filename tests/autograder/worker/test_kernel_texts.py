"""The checked texts of kernels, as the interpreter's process has them."""

from typing import Any

import pytest
import torch

from autograder.host.artifacts.kernel_source import checked_kernels
from autograder.protocol.requests.answers import Arguments
from autograder.protocol.requests.kernel_runs import RunKernels
from autograder.protocol.requests.loads import Part
from autograder.worker.kernel_calls import KernelCall, LauncherError
from autograder.worker.kernel_texts import interpreted_names
from autograder.worker.tensors import to_torch

TEXT = """
FACTOR = tl.constexpr(1.5)

@triton.jit
def scaled(block):
    return FACTOR * block

def launcher(x):
    return FACTOR
"""


@pytest.mark.parametrize("exact", [False, True])
def test_a_constant_of_the_text_is_a_plain_number_where_kernels_and_launchers_look(exact: bool) -> None:
    names = interpreted_names((Part("answer", TEXT),), exact=exact)
    for each in (names["scaled"].fn, names["launcher"]):
        assert each.__globals__["FACTOR"] == names["FACTOR"] == 1.5
        assert type(each.__globals__["FACTOR"]) is float


LAUNCHED = """
@triton.jit
def fill_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    {line}
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + row * n + at, x * (row + 1), mask=at < n)

def launcher(x):
    n, = x.shape
    {made}
    fill_kernel[(2,)](x, both, n, BLOCK=8)
    return {returned}
"""


def ran(*, line: str = "pass", made: str = "both = torch.empty((2, n))", returned: str = "both[0], both[1]") -> Any:
    text = LAUNCHED.format(line=line, made=made, returned=returned)
    parts = tuple(Part(*each) for each in checked_kernels({"answer": text}).parts.items())
    request = RunKernels("launcher", Arguments(({"tensor": 0},), {}), ())
    return KernelCall(interpreted_names(parts)).call(request, [torch.arange(5.0)])


def test_a_launcher_may_return_rows_of_a_tensor_that_it_made_and_their_stores_count_for_them() -> None:
    done = ran()
    assert [to_torch(raw).tolist() for raw in done.tensors] == [[0, 1, 2, 3, 4], [0, 2, 4, 6, 8]]
    traffic = {each.name: (each.role, each.elements, each.stores) for each in done.body.operands}
    assert [traffic[f"part {number}"] for number in (2, 3)] == [("output", 5, 5), ("output", 5, 5)]
    assert traffic["new tensor 1"] == ("scratch", 10, 0)
    assert done.body.launches[0].accesses == 4
    assert done.body.uncompiled == 0


def test_a_launcher_may_make_its_tensors_in_a_generator_or_a_list() -> None:
    made = "both, other = (torch.empty((2, n)) for _ in range(2)); both, _ = [each for each in (both, other)]"
    assert to_torch(ran(made=made, returned="both").tensors[0]).sum() == 30


@pytest.mark.parametrize(
    ("made", "first"),
    [
        ("both = torch.full((2, n), 3.0)", [3.0] * 5),
        ("both = torch.full_like(torch.empty((2, n)), math.inf, dtype=torch.float)", [torch.inf] * 5),
        (
            "both = torch.empty_strided((2, n), (n, 1)); assert isinstance(both, torch.Tensor)",
            [0.0, 1.0, 2.0, 3.0, 4.0],
        ),
        ("both = torch.ones((2, n))", [1.0] * 5),
        ("both = torch.ones_like(torch.full(size=(2, n), fill_value=3.0))", [1.0] * 5),
        ("both = torch.full_like(torch.empty((2, n)), fill_value=3.0)", [3.0] * 5),
        ("both = x.new_full((2, n), fill_value=3.0)", [3.0] * 5),
        ("both = x.new_ones(2, n, dtype=torch.float64)", [1.0] * 5),
        ("both = torch.full(**{'size': list((2, *x.shape)), 'fill_value': sum([1.0, 2])})", [3.0] * 5),
        ("both = torch.full((2, n), {torch.float32: 3.0, torch.float16: 4.0}[x.dtype])", [3.0] * 5),
    ],
)
def test_a_launcher_makes_tensors_of_one_value_and_of_any_strides(made: str, first: list[float]) -> None:
    done = ran(made=made, line="pass" if "strided" in made else "n = 0")
    assert to_torch(done.tensors[0]).tolist() == first


def test_no_launcher_makes_a_tensor_of_another_object() -> None:
    with pytest.raises(TypeError, match="not callable"):
        ran(made="both = torch.Tensor('both', x, lambda form: form)")


@pytest.mark.parametrize(
    ("made", "error", "said"),
    [
        ("both = sum([x, x])", LauncherError, "computes with a tensor"),
        ("both = all(list([x]))", LauncherError, "computes with a tensor"),
        ("both = x.new_ones(2, n); fill_kernel[(2,)](x, both, n, **{'BLOCK': 8, 'warmup': True})", TypeError, "warmup"),
        ("both = x.new_ones(2, n); fill_kernel[(2,)](x, both, n, BLOCK=8, **{'grid': (1,)})", TypeError, "grid"),
        ("both = x.new_full((1 << 30, n), 0)", LauncherError, "at most"),
    ],
)
def test_functions_on_plain_values_and_a_dict_of_arguments_open_nothing(made: str, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        ran(made=made)


def test_a_part_of_an_input_is_no_result() -> None:
    with pytest.raises(LauncherError, match="returns a part of an input"):
        ran(returned="x[1:][:2]")


@pytest.mark.parametrize("line", ["if at > 3: row += 1", "while row > 5: break", "if row > 5: at = 1"])
def test_what_triton_does_not_compile_is_not_run(line: str) -> None:
    with pytest.raises(LauncherError, match="Triton does not compile `fill_kernel`, line 5, "):
        ran(line=line)


def test_a_tensor_for_a_constant_is_refused() -> None:
    with pytest.raises(LauncherError, match=r"`BLOCK` is a tl\.constexpr and gets a tensor"):
        ran(made="both = torch.empty((2, n)); fill_kernel[(2,)](x, both, n, BLOCK=x)")
