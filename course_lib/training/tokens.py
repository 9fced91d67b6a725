"""Text as rows of numbers: a byte is its own number, and three numbers above stand for what is no byte."""

from collections.abc import Iterable

import torch

from course_lib.errors import TrainingError
from course_lib.training.corpus import Document

NUM_BYTES = 256
PADDING = 256  # fills a row after the end of its text
MASK = 257  # stands where a byte is hidden
END = 258  # closes a docstring
VOCABULARY_SIZE = 259


def encode(documents: Iterable[Document], *, sequence_length: int) -> torch.Tensor:
    """Return int64 rows of shape (rows, sequence_length) that hold the documents' docstrings one after another.

        >>> encode([Document("m", ("Hi", "a")), Document("n", ("b",))], sequence_length=4)
        tensor([[ 72, 105, 258,  97],
                [258, 256, 256, 256],
                [ 98, 258, 256, 256]])

    Each docstring is closed by `END`. A document begins a row of its own, and its last row is filled up with `PADDING`.
    Raises `TrainingError` for a length below 1 and where there is no text.
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
