"""Check a TorchScript archive from a worker file by file, as a zip file of data, and pack it anew.

The host never loads it. The clean worker does, by torch.jit.load, and the graded facts come from there. So the check
covers everything that torch.jit.load reads: pickles hold plain data and tensors inside their storages, and code calls
the operators in `OPERATORS` only. Other operators of PyTorch read and write files (`aten::from_file`, `aten::save`) or
memory outside their tensors (`aten::as_strided`). The check assumes that torch's reader handles such files correctly
and that the allowed operators stay in their own memory. Then the archive can compute and print, and do nothing else.
"""

import ast
import io
import re
import zipfile
from collections.abc import Mapping

import torch

from autograder.host.artifacts.torchscript_pickles import PickleRefusedError, require_plain_pickle
from autograder.host.source_text import UnreadableSourceError, parsed, text_in_lines, unparsed

MAX_ARCHIVE_BYTES = 8 << 20
MAX_FILES = 100
MAX_CHARACTERS = 40_000  # of the code of an archive
FILES = re.compile(r"(\.data/)?version|byteorder|data\.pkl|constants\.pkl|code/[\w/]+\.py|(data|constants)/\d+")
IGNORED = re.compile(r".*\.debug_pkl|\.data/serialization_id|\.format_version|\.storage_alignment")
_ALLOWED = """
    add sub rsub mul div floordiv remainder neg abs sign square pow sqrt rsqrt reciprocal exp log log1p tanh sigmoid
    relu gelu silu erf sin cos clamp minimum maximum max min where eq ne lt le gt ge logical_not logical_and logical_or
    sum mean sum_to_size amax softmax layer_norm dropout matmul mm bmm addmm linear einsum
    multiply divide true_divide subtract negative addcmul addcdiv lerp cosh sinh masked_fill cumsum prod any all flip
    mv dot outer new_zeros new_ones unbind unflatten movedim view_as reshape_as chunk split narrow
    view reshape unsqueeze squeeze flatten expand expand_as broadcast_to transpose permute t contiguous clone detach to
    type_as cat stack select slice size dim numel len zeros ones full zeros_like ones_like full_like tensor arange
    add_ sub_ mul_ div_ zero_ copy_ tanh_ append insert pop clear copy extend reverse list __getitem__ __contains__
    __is__ __isnot__ __not__ __and__ __or__ __range_length __derive_index format str item Bool Float Int
    is_floating_point Delete masked_fill_ fill_ clamp_ relu_ index index_put_
"""
OPERATORS = frozenset(_ALLOWED.split())
PRIMITIVES = {"RaiseException", "NumToTensor", "device", "dtype", "ndim", "shape", "min", "max", "unchecked_cast"}
BUILT_IN = {"annotate", "unchecked_cast", "uninitialized", "range", "float", "int", "bool", "str", "len"}
BUILT_IN |= {"isinstance", "print"}
BASES = {"Module", "NamedTuple"}
_OWN = re.compile(r"__torch__(\.\w+)+")
_REGISTERED = "__torch__.torch.classes"  # registered by C++, never part of an archive
_REFUSED_NODES = (
    ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Lambda, ast.With, ast.Try, ast.Delete, ast.Await,
    ast.AsyncFunctionDef, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp, ast.NamedExpr, ast.JoinedStr,
    ast.Yield, ast.Starred,
)  # fmt: skip


class ArchiveRefusedError(Exception):
    """The archive holds something that is not allowed; the message names it."""


def checked_archive(data: bytes) -> bytes:
    """Return an archive with the same program, made of the checked files; raise `ArchiveRefusedError`."""
    files = _files(data)
    checked: dict[str, bytes] = {}
    for name, content in files.items():
        try:
            checked[name] = _checked(name, content, files)
        except (CodeRefusedError, PickleRefusedError, UnicodeDecodeError) as error:
            raise ArchiveRefusedError(f"The archive holds {error} in {name}, which is not allowed here.") from None
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in checked.items():
            archive.writestr(zipfile.ZipInfo(f"archive/{name}"), content)
    return buffer.getvalue()


def _files(data: bytes) -> dict[str, bytes]:
    """Return the files of a zip by name, without their common folder."""
    if len(data) > MAX_ARCHIVE_BYTES:
        raise ArchiveRefusedError(f"The archive has {len(data):,} bytes; at most {MAX_ARCHIVE_BYTES:,} are accepted.")
    found: dict[str, bytes] = {}
    left = MAX_ARCHIVE_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist()[: MAX_FILES + 1]:
                name = info.filename.partition("/")[2]
                with archive.open(info) as file:
                    content = file.read(left + 1)
                left -= len(content)
                if name in found or left < 0 or len(found) == MAX_FILES:
                    raise ArchiveRefusedError("The archive holds a file twice, too many files, or too large ones.")
                if not IGNORED.fullmatch(name):
                    found[name] = content
    except ArchiveRefusedError:
        raise
    except Exception:  # zipfile and zlib raise many types for bytes that are no zip
        raise ArchiveRefusedError("The archive is no readable zip file.") from None
    code = sum(len(content) for name, content in found.items() if name.endswith(".py"))
    if code > MAX_CHARACTERS:
        raise ArchiveRefusedError(f"The archive holds {code:,} bytes of code; at most {MAX_CHARACTERS:,} are read.")
    strange = [name for name in found if not FILES.fullmatch(name)]
    if strange or not found.keys() >= {"data.pkl", "constants.pkl"}:
        what = f"the file {strange[0][:80]!r}" if strange else "too few files"
        raise ArchiveRefusedError(f"The archive holds {what}, which no program of this exercise needs.")
    return found


def _checked(name: str, content: bytes, files: Mapping[str, bytes]) -> bytes:
    if name.endswith(".py"):
        return rewritten_code(content.decode()).encode()
    if name.endswith(".pkl"):
        folder = name.removesuffix("pkl").replace(".", "/")
        storages = {key.removeprefix(folder): data for key, data in files.items() if key.startswith(folder)}
        require_plain_pickle(content, storages)
    if name.endswith("version") and not re.fullmatch(rb"\d{1,3}\n?", content):
        raise PickleRefusedError("no number")
    if name == "byteorder" and content != b"little":
        raise PickleRefusedError("another byte order")
    return content


class CodeRefusedError(Exception):
    """The code calls something that is not allowed; the message names it."""


def rewritten_code(text: str) -> str:
    """Return the code of one file, written anew from its syntax tree; raise `CodeRefusedError`."""
    try:
        tree = parsed(text, most=MAX_CHARACTERS)
        for node in ast.walk(tree):
            _require_allowed(node)
        _require_named_operators(tree)
        return text_in_lines(tree) + "\n"
    except UnreadableSourceError:
        raise CodeRefusedError("code that cannot be read") from None


def _require_allowed(node: ast.AST) -> None:
    if isinstance(node, ast.Attribute) and _dotted(node) == _REGISTERED:
        raise CodeRefusedError(f"a class of {_REGISTERED}")
    if isinstance(node, _REFUSED_NODES):
        raise CodeRefusedError(f"a {type(node).__name__}")
    if isinstance(node, ast.ClassDef) and any(_dotted(base) not in BASES for base in node.bases):
        raise CodeRefusedError(f"the class {node.name} of an unusual kind")
    if isinstance(node, ast.ClassDef | ast.FunctionDef) and (node.decorator_list or _is_builtin(node.name)):
        raise CodeRefusedError(f"a definition of {node.name}")
    if isinstance(node, ast.Call) and not _is_allowed(node.func):
        called = unparsed(node.func)[:80]
        ready = ", a derivative that PyTorch has ready," if called.endswith("_backward") else ""
        raise CodeRefusedError(f"a call of {called}{ready}")


def _require_named_operators(tree: ast.Module) -> None:
    """Require that operators are called by their full name, so that no alias can hide one."""
    called = {id(_root(node.func)) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in ("torch", "ops")]
    if any(id(name) not in called for name in names):
        raise CodeRefusedError("a module of operators under another name")


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _is_allowed(function: ast.expr) -> bool:
    name = _dotted(function)
    owner, _, last = name.rpartition(".")
    if owner in ("torch", "ops.aten"):
        return last in OPERATORS
    if owner == "ops.prim":
        return last in PRIMITIVES
    if name in BUILT_IN or _OWN.fullmatch(name):
        return True
    # a method of a class in the archive; tensors and lists have no method of this name
    first = name.split(".")[0]
    return isinstance(function, ast.Attribute) and first not in ("torch", "ops") and not _is_builtin(function.attr)


def _is_builtin(name: str) -> bool:
    """Tell whether `name` is also a built-in name of TorchScript: a tensor method or an operator."""
    known = hasattr(torch.Tensor, name) or hasattr(torch.ops.aten, name) or hasattr(torch.ops.prim, name)
    return name in BUILT_IN or (known and name != "forward")


def _dotted(node: ast.expr) -> str:
    """Return the dotted name of an expression such as `a.b.c`; other expressions give a string that is not a name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return "?"
