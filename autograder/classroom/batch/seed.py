"""Draw and keep the secret seed of a class. All inputs of checks are drawn from it, so it must stay on this machine.

>>> seed = secret_seed(Path("work/secret_seed"))
>>> fingerprint(seed)       # may be published
'9c1a5f0e'
"""

import contextlib
import functools
import hashlib
import os
import secrets
from pathlib import Path


def secret_seed(path: Path) -> int:
    """Return the seed kept in the file `path`, drawn now if there is none; only the owner can read the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        # whole or not at all: a half-written seed would silently be another seed
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(str(secrets.randbits(63)))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(fresh, path)
        finally:
            fresh.unlink()
    return int(path.read_text())


@functools.cache
def fingerprint(seed: int) -> str:
    """Return eight characters that tell two seeds apart and reveal neither."""
    # slow on purpose: a seed has 63 bits, and its fingerprint is published
    return hashlib.scrypt(str(seed).encode(), salt=b"seed fingerprint", n=2**14, r=8, p=1, dklen=4).hex()
