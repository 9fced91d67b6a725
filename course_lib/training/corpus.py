"""Build a corpus from a text that every Python has: the docstrings of the standard library, parsed and never run."""

import ast
import hashlib
import os
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from course_lib.errors import TrainingError

# Excluded folders: tests of Python, copies that are kept for compatibility, and packages that pip installed.
LEFT_OUT_FOLDERS = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "__pycache__"}
TELLING_LINE_BYTES = 40  # two authors rarely write the same line of this length independently


@dataclass(frozen=True)
class Document:
    """Hold the docstrings of one module, in the order of its file."""

    module: str
    docstrings: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """Return the length of all docstrings together in UTF-8."""
        return sum(len(text.encode()) for text in self.docstrings)


@dataclass(frozen=True)
class Corpus:
    """Hold text for training and held-out text of other modules."""

    train: tuple[Document, ...]
    held_out: tuple[Document, ...]

    @property
    def fingerprint(self) -> str:
        """Return a hash of all texts and of the side of each; it is equal only for equal corpora."""
        digest = hashlib.sha256()
        for side in (self.train, self.held_out):
            digest.update(repr([(document.module, document.docstrings) for document in side]).encode())
        return digest.hexdigest()

    def __str__(self) -> str:
        sides = (("train", self.train), ("held out", self.held_out))
        return "\n".join(
            f"{name:8}  {len(side):4} modules  {sum(each.size_bytes for each in side):9,} bytes" for name, side in sides
        )


def corpus(folder: Path | str | None = None, *, max_bytes: int = 1_000_000, held_out_share: float = 0.1) -> Corpus:
    """Return docstrings of the Python files below `folder`, by default of the standard library.

        >>> text = corpus(max_bytes=50_000)
        >>> {each.module for each in text.train} & {each.module for each in text.held_out}
        set()

    The files are parsed, never imported. The order of packages depends only on their names. A whole package goes to one
    side, together with its variants (`_pydecimal` goes with `decimal`), until the corpus has `max_bytes`. About
    `held_out_share` of it is held out. A repeated docstring is kept once. A held-out docstring that shares a long line
    with the training text is dropped, so that the model cannot memorise held-out text.

    Raises `TrainingError` for impossible sizes, and if there is too little text for both sides.
    """
    if max_bytes < 1 or not 0 < held_out_share < 1:
        raise TrainingError(
            f"corpus got max_bytes={max_bytes} and held_out_share={held_out_share}; it expects a positive number of "
            "bytes and a share between 0 and 1."
        )
    root = Path(folder or sysconfig.get_paths()["stdlib"])
    train, held_out = _split(root, max_bytes, held_out_share)
    if not train or not held_out:
        raise TrainingError(
            f"corpus found text for {len(train)} modules to learn from and {len(held_out)} to hold out in {root}; it "
            "expects Python files with docstrings on both sides, so name another folder or allow more bytes."
        )
    return Corpus(train, held_out)


def docstrings(source: str) -> tuple[str, ...]:
    """Return the docstrings of a module and of the classes and functions in it, in the order of the file.

        >>> docstrings("'A module.'\\ndef f():\\n    '''A function.'''")
        ('A module.', 'A function.')

    Raises `SyntaxError` or `ValueError` for text that is no Python program.
    """
    places = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, places)]
    nodes.sort(key=lambda node: getattr(node, "lineno", 0))  # ast.walk goes level by level
    return tuple(text for node in nodes if (text := ast.get_docstring(node)))


class _Side:
    """Collect the texts of one side of the corpus."""

    def __init__(self, max_bytes: float) -> None:
        self.documents: list[Document] = []
        self.room_bytes = max_bytes
        self.full = False

    def add(self, document: Document, seen: set[str]) -> None:
        """Add docstrings that are new, until one does not fit."""
        kept: list[str] = []
        for text in document.docstrings:
            self.room_bytes -= len(text.encode()) * (text not in seen)
            self.full = self.full or self.room_bytes < 0
            if not self.full and text not in seen:
                seen.add(text)
                kept.append(text)
        if kept:
            self.documents.append(Document(document.module, tuple(kept)))


def _split(root: Path, max_bytes: int, held_out_share: float) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    train, held_out = _Side(max_bytes * (1 - held_out_share)), _Side(max_bytes * held_out_share)
    seen: set[str] = set()
    for package, paths in _packages(root):
        side = held_out if _chance(f"side of {package}") < held_out_share else train
        for path in paths:
            if not side.full:  # parsing the whole library would take seconds
                side.add(_document(root, path), seen)
    known = {line for document in train.documents for text in document.docstrings for line in _telling_lines(text)}
    return tuple(train.documents), tuple(kept for each in held_out.documents if (kept := _without(each, known)))


def _packages(root: Path) -> list[tuple[str, list[Path]]]:
    """Return the files of each package, with the packages shuffled by a hash of their names."""
    found: dict[str, list[Path]] = {}
    for path in sorted(_programs(root)):
        parts = path.relative_to(root).parts
        if not parts[0].startswith("config-"):
            found.setdefault(_family(parts[0].removesuffix(".py")), []).append(path)
    return sorted(found.items(), key=lambda package: _chance(package[0]))


def _programs(root: Path) -> Iterator[Path]:
    """Yield the Python files outside the excluded folders."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in LEFT_OUT_FOLDERS]
        yield from (Path(folder, name) for name in names if name.endswith(".py"))


def _family(name: str) -> str:
    """Return one name for modules with the same docstrings, such as `_pyio` and `io`."""
    return name.lstrip("_").removeprefix("py").lstrip("_") or name


def _chance(name: str) -> float:
    """Return a number in [0, 1) that depends only on the name, in every process and on every machine."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") / 2**64


def _document(root: Path, path: Path) -> Document:
    try:
        found = docstrings(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, OSError):  # some files are templates or have other encodings
        found = ()
    return Document(".".join(path.relative_to(root).with_suffix("").parts), found)


def _without(document: Document, known: set[str]) -> Document | None:
    kept = tuple(text for text in document.docstrings if known.isdisjoint(_telling_lines(text)))
    return Document(document.module, kept) if kept else None


def _telling_lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if len(line.strip()) >= TELLING_LINE_BYTES}


NUM_BYTES = 256
PADDING = 256  # fills a row after its text
MASK = 257  # replaces a masked byte
END = 258  # closes a docstring
VOCABULARY_SIZE = 259


def encode(documents: Iterable[Document], *, sequence_length: int) -> torch.Tensor:
    """Return int64 rows of shape (rows, sequence_length) that hold the documents' docstrings one after another.

        >>> encode([Document("m", ("Hi", "a")), Document("n", ("b",))], sequence_length=4)
        tensor([[ 72, 105, 258,  97],
                [258, 256, 256, 256],
                [ 98, 258, 256, 256]])

    Each docstring ends with `END`. Each document begins a new row, and its last row is filled with `PADDING`.
    Raises `TrainingError` for a length below 1, and if there is no text.
    """
    if sequence_length < 1:
        raise TrainingError(f"encode got sequence_length={sequence_length}; it expects 1 or more.")
    rows = [_rows(document, sequence_length) for document in documents]
    if not rows:
        raise TrainingError("encode got no documents; it expects at least one with a docstring.")
    return torch.cat(rows)


def decode(tokens: torch.Tensor) -> str:
    """Return the text of one row, with · for a hidden byte, ¶ for the end of a docstring and nothing for padding.

    >>> decode(torch.tensor([72, MASK, END, PADDING]))
    'H·¶'
    """
    signs = {PADDING: b"", MASK: "·".encode(), END: "¶".encode()}
    return b"".join(signs.get(number) or bytes([number]) for number in tokens.tolist() if number != PADDING).decode(
        errors="replace"
    )


def _rows(document: Document, length: int) -> torch.Tensor:
    numbers = [number for text in document.docstrings for number in (*text.encode(), END)]
    numbers += [PADDING] * (-len(numbers) % length)
    return torch.tensor(numbers, dtype=torch.int64).reshape(-1, length)
