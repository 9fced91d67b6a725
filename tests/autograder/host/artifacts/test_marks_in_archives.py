"""An archive runs what its code calls: a mark in any place of the code is refused, or not run in a clean worker."""

import ast
import contextlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from autograder.host.artifacts.torchscript_archive import ArchiveRefusedError, checked_archive

# TorchScript's own operator that writes a file, as code of an archive may spell it.
MARKS = ("torch.save(x, {!r})", "ops.aten.save(x, {!r})")
CODE = ".py"


class Pair(NamedTuple):
    """A class of the archive."""

    left: Tensor
    right: Tensor


class Program(nn.Module):
    """Have each kind of statement and expression that PyTorch writes for a scripted program."""

    past: list[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.past, self.part = 2.0, [], nn.Linear(4, 4)

    def forward(self, x: Tensor, mode: str = "plain", times: int = 2) -> tuple[Tensor, list[Tensor]]:
        """Return a tensor and a list."""
        pair = Pair(x, self.part(x))
        total = pair.left * self.scale
        for i in range(times):
            total = total + pair.right * i if i > 0 else total - x
        while bool(total.sum() > 1e9) and not bool(total.sum() < 0):
            total = total[:, 1:3]
        if mode == "other":
            raise ValueError(f"mode {mode}")
        total[0] = torch.softmax(input=total, dim=-1)[1]
        self.past.append(total)
        rest: Tensor | None = None if times > 5 else -total
        return torch.cat([total, total if rest is None else rest]), self.past


def packed(archive: bytes, code: str) -> bytes:
    """Return the archive with other code in the file that has the program."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(result, "w") as new:
        for name in old.namelist():
            new.writestr(name, code if name == code_file(old) else old.read(name))
    return result.getvalue()


def code_file(archive: zipfile.ZipFile) -> str:
    """Return the name of the file with the program."""
    return next(name for name in archive.namelist() if name.endswith(CODE) and b"forward" in archive.read(name))


def saved() -> tuple[bytes, str]:
    """Return the archive of the program, and its code."""
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Program()), buffer)
    with zipfile.ZipFile(buffer) as archive:
        return buffer.getvalue(), archive.read(code_file(archive)).decode()


def marked(code: str, mark: str) -> Iterator[tuple[str, str]]:
    """Yield the code with the mark in place of each part of its tree and before it, and where it is."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            statement = ast.parse(mark).body[0]
            new = mark if isinstance(value, str) else statement if name in ("body", "orelse") else statement.value
            others = [new]
            if isinstance(value, list):
                spans = [(i, i + taken) for i in range(len(value) + 1) for taken in (0, 1)]
                others = [[*value[:first], new, *value[after:]] for first, after in spans]
            for other in others:
                setattr(node, name, other)
                with contextlib.suppress(Exception):  # a tree that no code has
                    text = ast.unparse(tree) + "\n"
                    if "save" in text:  # not where the code has no such place, such as a type in a comment
                        yield text, f"{type(node).__name__}.{name}"
            setattr(node, name, value)


def run(archive: bytes) -> bool:
    """Load an archive as the clean worker does, and run it; return whether it could be loaded."""
    try:
        program = torch.jit.load(io.BytesIO(archive))
    except RuntimeError:
        return False
    for given in ((torch.ones(2, 4),), (torch.ones(2, 4), "other"), (torch.ones(2, 4), "plain", 6)):
        with contextlib.suppress(Exception):
            program(*given)
    return True


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_in_any_place_of_the_code_is_refused_or_not_run(mark: str, tmp_path: Path) -> None:
    archive, code = saved()
    file = tmp_path / "ran"
    assert run(checked_archive(archive))
    tried, loaded = set(), set()
    for text, where in marked(code, mark.format(str(file))):
        tried.add(where)
        with contextlib.suppress(ArchiveRefusedError):
            loaded |= {where} if run(checked_archive(packed(archive, text))) else set()
        assert not file.exists(), (where, text)
    assert {"Call.args", "Call.func", "Assign.value", "FunctionDef.body", "If.test", "arguments.defaults"} <= tried
    assert loaded <= {"Constant.value", "Attribute.attr"}  # a text, and the type of self, which no reader uses


def test_the_marks_run_without_the_look_at_the_text(tmp_path: Path) -> None:
    archive, code = saved()
    file = tmp_path / "ran"
    texts = (text for text, where in marked(code, MARKS[0].format(str(file))) if where == "FunctionDef.body")
    assert any(run(packed(archive, text)) and file.exists() for text in texts)
