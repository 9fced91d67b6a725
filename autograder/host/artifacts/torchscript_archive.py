"""Check a TorchScript archive from a worker file by file, as a zip file of data, and pack it anew.

The host never loads it. The clean worker does, by torch.jit.load, and the graded facts come from there. So the check
covers everything that torch.jit.load reads: pickles hold plain data and tensors inside their storages, and code calls
allowed operators only. It assumes that torch's reader handles such files correctly and that these operators stay in
their own memory. The archive can then only compute.
"""

import io
import re
import zipfile
from collections.abc import Mapping

from autograder.host.artifacts.torchscript_code import CodeRefusedError, rewritten_code
from autograder.host.artifacts.torchscript_pickles import PickleRefusedError, require_plain_pickle

MAX_ARCHIVE_BYTES = 8 << 20
MAX_FILES = 100
FILES = re.compile(r"(\.data/)?version|byteorder|data\.pkl|constants\.pkl|code/[\w/]+\.py|(data|constants)/\d+")
IGNORED = re.compile(r".*\.debug_pkl|\.data/serialization_id|\.format_version|\.storage_alignment")
NEEDED = {"data.pkl", "constants.pkl"}


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
    strange = [name for name in found if not FILES.fullmatch(name)]
    if strange or not found.keys() >= NEEDED:
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
