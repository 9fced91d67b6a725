"""What Inductor would generate, without a compiler: as the real compilation counts it, everywhere the same."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F

from course_lib.errors import GraphError
from course_lib.graph.generated_code import compiled_cost, lowered
from tests.drawn import some

ROWS, N = 8, 64


def _layer(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(F.gelu(x @ weight) + x, (N,))


def _broken(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    h = F.gelu(x) + 1
    torch._dynamo.graph_break()
    return F.layer_norm(h * 2, (N,)) @ weight


def _written(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    x.mul_(2)
    return x.sum(dim=1), weight.t() + 1


def _branching(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x.sin() if x.sum() > 0 else torch.sort(x)[0] + weight[0]


def _chain(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return ((x + 1).sin() * 2).exp()


def _inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(ROWS, N), torch.randn(N, N)


@pytest.mark.slow
@pytest.mark.parametrize("programs", [(_layer, _broken), (_written, _branching)], ids=["layers", "effects"])
def test_what_is_lowered_counts_as_what_is_compiled(programs: Sequence[Callable[..., object]]) -> None:
    for fn in some(programs, 1, name=f"programs beside {programs[0].__name__}"):
        assert lowered(fn, _inputs()) == compiled_cost(fn, _inputs())


def test_the_result_of_a_program_stays_what_it_is() -> None:
    x, weight = _inputs()
    expected = x * 2
    assert lowered(_written, (x, weight)).graphs == 1
    assert torch.equal(x, expected)


def test_every_graph_of_a_broken_program_is_lowered() -> None:
    found = lowered(_broken, _inputs())
    assert (found.graphs, found.generated_kernels, found.library_calls, len(found.code)) == (2, 2, 1, 2)


def test_a_program_of_views_alone_costs_nothing() -> None:
    found = lowered(lambda x, weight: x.t(), _inputs())
    assert (found.generated_kernels, found.library_calls, found.bytes_moved) == (0, 0, 0)


def test_a_kernel_that_is_written_once_may_run_twice() -> None:
    found = lowered(lambda x, weight: ((x @ weight).sin() @ weight).sin(), _inputs())
    assert (found.generated_kernels, found.launches, found.library_calls) == (1, 2, 2)


def test_options_change_what_is_generated_and_only_once() -> None:
    import torch._inductor.config as options

    before = options.max_fusion_size
    apart = lowered(_chain, _inputs(), config={"max_fusion_size": 1, "cpp.simdlen": 0})
    assert "Vectorized" not in apart.code[0]
    together = lowered(_chain, _inputs())
    assert "Vectorized" in together.code[0]
    assert together.code == lowered(_chain, _inputs()).code
    assert options.max_fusion_size == before


def test_an_unknown_option_and_a_wrong_program_are_named() -> None:
    with pytest.raises(GraphError, match="no option 'max_fusion'"):
        lowered(_chain, _inputs(), config={"max_fusion": 1})
    with pytest.raises(GraphError, match=r"_layer cannot be lowered .*same reduction dim.*\): run it without"):
        lowered(_layer, (torch.randn(3, 4), torch.randn(3, 4)))


def test_nothing_of_what_was_compiled_before_stays_changed() -> None:
    from torch._inductor import cpp_builder, cpu_vec_isa
    from torch._inductor.graph import GraphLowering

    before = (GraphLowering.compile_to_module, cpp_builder.is_gcc, cpu_vec_isa.pick_vec_isa)
    with pytest.raises(GraphError):
        lowered(_layer, (torch.randn(3, 4), torch.randn(3, 4)))
    assert (GraphLowering.compile_to_module, cpp_builder.is_gcc, cpu_vec_isa.pick_vec_isa) == before


BARE = """
import os, sys, torch
from course_lib.graph.generated_code import lowered

if os.fork() == 0:  # PyTorch looks for Triton once in a process
    sys.modules["triton"] = None
    found = lowered(lambda x: (x + 1, x.sum(1)), [torch.ones(8, 60)], config={"cpu_backend": "triton"})
    print(found.code[0].count("tl.store"), "xmask" in found.code[0], "kernel path" in found.code[0], flush=True)
    os._exit(0)
os.wait()
found = lowered(lambda x: x.exp() + 1, [torch.randn(8, 64)])
print(found.generated_kernels, found.library_calls, found.bytes_moved)
"""


def test_no_compiler_is_needed_and_for_triton_neither_a_gpu_nor_triton() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BARE], env={"PATH": "/nothing"}, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["2 True False", f"1 0 {2 * 4 * 8 * 64}"], done.stderr[-500:]


def test_no_process_waits_for_something_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch._inductor.async_compile.AsyncCompile.process_pool", lambda: pytest.fail("one started"))
    found = lowered(lambda x: x.exp() + 1, [torch.ones(8, 60)], config={"cpu_backend": "triton"})
    assert "tl.store" in found.code[0]


def test_programs_are_lowered_from_several_threads_one_after_the_other() -> None:
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda width: lowered(_chain, (torch.ones(4, width), None)), (8, 16, 24)))
    assert [cost.bytes_moved for cost in found] == [2 * 4 * 4 * width for width in (8, 16, 24)]
