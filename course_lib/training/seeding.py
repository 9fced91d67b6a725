"""A seed for each purpose and step of a run, so that what a step draws depends on nothing drawn before it."""

import hashlib


def seed_for(seed: int, purpose: str, number: int = 0) -> int:
    """Return a seed in [0, 2**63) that only the three arguments decide.

        >>> seed_for(0, "masks", 1) == seed_for(0, "masks", 1) != seed_for(0, "masks", 2)
        True

    A run that goes on from step 300 then draws what it would have drawn, and no generator's state has to be kept.
    """
    return int.from_bytes(hashlib.sha256(f"{seed}/{purpose}/{number}".encode()).digest()[:8], "big") >> 1
