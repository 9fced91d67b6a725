"""The private parts of PyTorch that captures lean on are still where they were; each is used in one module only."""

import importlib
import re
from pathlib import Path

import pytest
import torch

import course_lib.capture

FOLDER = Path(course_lib.capture.__file__).parent
# (where it lies, what it is called, the module of ours that uses it)
PRIVATE = [
    ("torch.fx.experimental.proxy_tensor", "make_fx", "dispatched.py"),
    ("torch._dynamo.eval_frame", "_debug_get_cache_entry_list", "dynamo.py"),
    ("torch._dynamo.utils", "counters", "dynamo.py"),
    ("torch._functorch.aot_autograd", "aot_function", "aot.py"),
    ("torch._functorch.aot_autograd", "make_boxed_func", "aot.py"),
    ("torch._functorch.partitioners", "min_cut_rematerialization_partition", "aot.py"),
    ("torch._lazy.ts_backend", "init", "lazy.py"),
    ("torch._C", "parse_ir", "nested_graphs.py"),
    ("torch._C", "_jit_pass_custom_pattern_based_rewrite_graph", "script_rewriting.py"),
    ("torch._C", "_llvm_enabled", "executor_flags.py"),
    ("torch._C._lazy", "_get_tensors_text", "lazy.py"),
    ("torch._C._lazy", "_get_tensors_backend", "lazy.py"),
    ("torch.nn.modules.module", "_global_forward_hooks", "../module_hooks.py"),
    ("torch.nn.modules.module", "_global_forward_pre_hooks", "../module_hooks.py"),
    ("torch.nn.modules.module", "_global_backward_hooks", "../module_hooks.py"),
    ("torch.nn.modules.module", "_global_backward_pre_hooks", "../module_hooks.py"),
]


@pytest.mark.parametrize(("module", "name", "ours"), PRIVATE)
def test_a_private_name_is_where_it_was(module, name, ours):
    try:
        found = hasattr(importlib.import_module(module), name)
    except ImportError:
        found = hasattr(importlib.import_module(module.rpartition(".")[0]), module.rpartition(".")[2])
    assert found, f"torch {torch.__version__} has no {module}.{name}: course_lib/capture/{ours} needs another way"


def test_a_dynamo_graph_carries_the_reason_of_its_break():
    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return graph_module.forward

    torch.compile(lambda x: x * 2 if x.sum() > 0 else x, backend=backend)(torch.ones(2))
    assert graphs[0].compile_subgraph_reason.graph_break, "course_lib/capture/dynamo.py reads the reason elsewhere"


@pytest.mark.parametrize("private", [r"torch\._dynamo", r"torch\._functorch", r"torch\._lazy|_C\._lazy"])
def test_a_private_part_of_pytorch_is_used_in_one_module(private):
    users = [
        path.name
        for path in sorted(FOLDER.rglob("*.py"))
        if re.search(rf"(?m)^\s*(from|import) .*({private})", path.read_text())
    ]
    assert len(users) == 1
