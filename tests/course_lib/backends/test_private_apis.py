"""What the kit needs of PyTorch's private parts is where it was, and is used in one module."""

import importlib
import re
from pathlib import Path

import pytest
import torch

import course_lib.backends

FOLDER = Path(course_lib.backends.__file__).parent
PRIVATE = [
    ("torch.fx.experimental.proxy_tensor", "make_fx"),
    ("torch._decomp", "get_decompositions"),
    ("torch._dynamo.backends.common", "aot_autograd"),
    ("torch._functorch.aot_autograd", "make_boxed_func"),
    ("torch._subclasses.fake_tensor", "FakeTensor"),
    ("torch._subclasses.fake_tensor", "FakeTensorMode"),
    ("torch._subclasses.fake_tensor", "unset_fake_temporarily"),
]


@pytest.mark.parametrize(("module", "name"), PRIVATE)
def test_a_private_name_is_where_it_was(module, name):
    found = hasattr(importlib.import_module(module), name)
    assert found, f"torch {torch.__version__} has no {module}.{name}: course_lib/backends/aten.py needs another way"


def test_private_parts_are_used_in_one_module():
    private = r"(?m)^\s*(from|import) torch\.(_|fx\.experimental)"
    users = [path.name for path in sorted(FOLDER.rglob("*.py")) if re.search(private, path.read_text())]
    assert users == ["aten.py"]
