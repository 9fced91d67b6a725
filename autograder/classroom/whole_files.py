"""Write a file completely or not at all, so that a full disk or a killed process leaves the earlier one."""

from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file, in UTF-8 if `content` is text; its folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    part.replace(path)
