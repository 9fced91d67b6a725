"""PyTorch's own rewrites are noticed where they run, and what PyTorch runs anyway is not taken for one."""

import _thread
import gc
import importlib
import inspect
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType, SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import torch
import torch._refs
from torch._decomp import decomposition_table
from torch._decomp import decompositions_for_jvp as for_jvp
from torch._dynamo.testing import EagerAndRecordGraphs
from torch.fx import symbolic_trace
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.dialect.common import cse_pass
from torch.fx.passes.shape_prop import ShapeProp
from torch.nn import functional as F

from autograder.worker.kinds.collected_graphs import refused_recorders
from autograder.worker.observed_functions import own_threads
from autograder.worker.rewrites_of_torch import (
    RewrittenByTorchError,
    UnobservedError,
    begin_answer,
    note_rewrites,
    refused_files,
    refused_rewrites,
)


@pytest.fixture(autouse=True)
def _another_answer():
    begin_answer()
    yield
    begin_answer()


def doubled(x):
    y = x.clone()
    return y.mul_(2)


def derivative(x):
    leaf = x.detach().requires_grad_()
    return torch.autograd.grad(leaf.tanh().sum(), leaf)[0]


def functional_in_c(x):
    torch._enable_functionalization(reapply_views=True)
    torch._disable_functionalization()


REWRITES = {
    "run_backward": lambda x: make_fx(derivative)(x),
    "_enable_functionalization": functional_in_c,
    r"torch\._refs\.nn\.functional\.gelu": lambda x: torch._refs.nn.functional.gelu(x),
    r"torch\._(decomp|refs)\.": lambda x: make_fx(lambda y: F.silu(y), decomposition_table=decomposition_table)(x),
    r"for_jvp\.native_layer_norm_backward": lambda x: for_jvp.native_layer_norm_backward(
        x, x, [6], x, x, x[0], x[0], [True] * 3
    ),
    "functionalize": lambda x: torch.func.functionalize(doubled)(x),
    r"torch\._(functorch|refs)\.": lambda x: torch.compile(doubled, backend="aot_eager")(x),
}


@pytest.mark.parametrize("name", REWRITES)
def test_a_rewrite_of_pytorch_is_refused_and_named(name):
    note_rewrites()
    with pytest.raises(RewrittenByTorchError, match=name), refused_rewrites():
        REWRITES[name](torch.randn(4, 6))


@pytest.mark.parametrize("name", ["allocate", "_Scan"])
def test_a_file_of_the_course_is_refused_as_one_of_a_package_is(name: str) -> None:
    from course_lib.backends.toy import registers

    with (
        pytest.raises(RewrittenByTorchError, match=name),
        refused_files([f"course_lib/backends/toy/registers.py:{name}"]),
    ):
        getattr(registers, name)((), 4)


def test_one_that_ran_at_the_load_is_refused_at_the_capture():
    with note_rewrites():
        torch._refs.nn.functional.gelu(torch.randn(3))
    with pytest.raises(RewrittenByTorchError, match="gelu"), refused_rewrites():
        pass


def test_tracing_formulas_by_dispatch_is_no_rewrite():
    def formula(x):
        h = x.double()
        normed = (h - h.mean(-1, keepdim=True)) * torch.rsqrt(h.var(-1, keepdim=True, correction=0) + 1e-5)
        parts = torch.cat([x[:, :1] * 2, x[:, 1:]], 1), torch.select_scatter(x, x[:, 2:5].sum(1), 1, 3)
        return normed, F.gelu(x), x.cumsum(1), torch.stack(parts), torch.where(x > 0, x, 0.0), x @ x.mT

    with note_rewrites(), refused_rewrites():
        leaf = torch.randn(4, 6, requires_grad=True)
        make_fx(formula)(torch.randn(4, 6))
        torch.autograd.grad(formula(leaf)[0].sum(), leaf)


def test_a_class_derived_from_a_pass_of_the_library_is_refused_like_the_pass():
    from course_lib.fusion import PASSES

    derived = type("Mine", (PASSES["dead_code"],), {})
    with pytest.raises(RewrittenByTorchError, match="Mine"), refused_rewrites(passes_only=True):
        derived().transform(torch.fx.symbolic_trace(lambda x: x + 1))


def test_a_copy_of_a_pass_of_pytorch_is_refused_under_any_name():
    text = inspect.getsource(cse_pass).replace("class CSEPass", "class Mine")
    copied = {"__name__": "answer"}
    exec(text, copied)

    with pytest.raises(RewrittenByTorchError, match="copy of CSEPass"), refused_rewrites(passes_only=True):
        copied["Mine"]()(torch.fx.symbolic_trace(lambda x: torch.sin(x) + torch.sin(x)))


def gelu_under(**names):
    """Return PyTorch's decomposition of GELU, whose code has other names."""
    function = inspect.unwrap(torch._refs.nn.functional.gelu)
    return FunctionType(function.__code__.replace(**names), function.__globals__, "mine", function.__defaults__)


HELPER = torch._refs.nn.functional._nll_loss_nd  # a helper, which is refused nowhere


@pytest.mark.parametrize(
    "names",
    [
        {"co_filename": "<answer>"},
        {"co_filename": F.__file__, "co_qualname": "gelu"},
        {"co_filename": HELPER.__code__.co_filename, "co_qualname": HELPER.__qualname__},
    ],
)
def test_a_copy_of_a_decomposition_is_refused_where_decompositions_are(names):
    with pytest.raises(RewrittenByTorchError, match="copy of gelu"), refused_rewrites():
        gelu_under(**names)(torch.ones(2))
    with refused_rewrites(passes_only=True):
        gelu_under(**names)(torch.ones(2))


def test_a_function_that_uses_few_names_is_no_copy():
    def guard(match):
        return match.nodes[0].meta

    with refused_rewrites(passes_only=True):
        guard(SimpleNamespace(nodes=[SimpleNamespace(meta=1)]))


def test_a_backend_of_pytorch_that_records_graphs_is_refused_and_left_as_it_was():
    called = EagerAndRecordGraphs.__call__

    with pytest.raises(RewrittenByTorchError, match="EagerAndRecordGraphs"), refused_recorders():
        torch.compile(lambda x: x + 1, backend=EagerAndRecordGraphs())(torch.ones(2))

    assert EagerAndRecordGraphs.__call__ is called
    with refused_recorders():
        torch.compile(lambda x: x + 2, backend=lambda graph, _: graph.forward)(torch.ones(2))


def test_an_interpreter_of_torch_fx_starts_no_thread():
    with refused_rewrites(passes_only=True):
        torch.fx.Interpreter(torch.fx.symbolic_trace(lambda x: x + 1)).run(torch.ones(1))


def test_a_function_of_a_refused_file_is_named():
    with pytest.raises(RewrittenByTorchError, match="ShapeProp"), refused_files(["torch/fx/passes/shape_prop.py"]):
        ShapeProp(symbolic_trace(doubled)).propagate(torch.ones(2))


def test_what_a_function_of_a_refused_file_raises_hides_nothing():
    with pytest.raises(RewrittenByTorchError, match=r"jit\._trace\.trace"), refused_files(["torch/jit/_trace.py"]):
        torch.jit.trace(None, ())


def test_an_import_and_functions_of_other_files_are_not_refused(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch.fx.passes.fake_tensor_prop", raising=False)
    with refused_files(["torch/fx/passes/fake_tensor_prop.py"]):
        importlib.import_module("torch.fx.passes.fake_tensor_prop")
        ShapeProp(symbolic_trace(doubled)).propagate(torch.ones(2))


def test_a_function_of_another_package_is_refused_and_its_neighbours_are_not():
    with refused_files(["numpy/linalg/", "torch/nn/functional.py:relu"]):
        F.silu(torch.ones(2))
    for place, call in (("numpy/linalg/", lambda: np.linalg.det(np.eye(2))), ("torch/nn/functional.py:relu", _relu)):
        with pytest.raises(RewrittenByTorchError), refused_files([place]):
            call()


def _relu():
    return F.relu(torch.ones(2))


@pytest.mark.parametrize(
    ("does", "told"),
    [
        (lambda: threading.Thread(target=list).start(), "a thread"),
        (lambda: [*map(_thread.start_new_thread, [list], [()])], "a thread"),
        (lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0), "another process"),
        (lambda: sys.getprofile().__closure__, "sys.getprofile"),
        (gc.get_objects, "gc.get_objects"),
    ],
)
def test_what_runs_or_looks_where_nobody_observes_is_refused_with_a_file(does, told):
    with pytest.raises(UnobservedError, match=told), refused_files(["torch/fx/passes/shape_prop.py"]):
        does()


@pytest.mark.parametrize("raises", [False, True])
def test_what_goes_on_after_a_request_is_refused_in_every_later_one_of_this_answer(raises):
    def start():
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
        if raises:
            raise ValueError

    with pytest.raises(ValueError if raises else UnobservedError), refused_files([]):
        start()
    with pytest.raises(UnobservedError, match="another process"), refused_files([]):
        pass
    begin_answer()
    with refused_files([]):
        pass


def test_the_worker_may_start_threads_of_its_own_while_files_are_refused():
    with refused_files(["torch/fx/passes/shape_prop.py"]), own_threads(2), ThreadPoolExecutor(2) as pool:
        list(pool.map(abs, (1, 2)))


class Loud(type):
    """A metaclass that runs code when somebody asks a class for its module."""

    ran: ClassVar[list[str]] = []

    @property
    def __module__(cls):
        Loud.ran.append("ran")
        return "loud"


def test_no_code_of_an_answer_runs_inside_the_observer():
    def guard(self):
        return self

    with refused_files(["torch/fx/passes/shape_prop.py"]):
        guard(Loud("Part", (), {})())

    assert not Loud.ran


@pytest.mark.parametrize("place", ["torch/fx/graph.py:_Namespace", "torch/fx/interpreter.py"])
def test_a_refused_file_is_seen_in_a_capture_too_and_a_helper_where_it_is_named(place):
    def run():
        torch.fx.Interpreter(torch.fx.symbolic_trace(lambda x: x + 1)).run(torch.ones(1))

    named = pytest.raises(RewrittenByTorchError, match=place.partition(":")[2] or "Interpreter")
    with named, refused_files([place]), refused_rewrites(passes_only=True):
        run()
