"""Quantities as text, each in the unit in which it reads best."""


def format_us(time_us: float) -> str:
    """Return a time that is given in microseconds, with three digits and a unit.

    >>> format_us(0.25), format_us(12.3456), format_us(45678.0), format_us(3e6)
    ('250 ns', '12.3 µs', '45.7 ms', '3 s')
    """
    for size_us, unit in ((1e6, "s"), (1e3, "ms"), (1.0, "µs")):
        if abs(time_us) >= size_us:
            return f"{time_us / size_us:.3g} {unit}"
    return f"{time_us * 1e3:.3g} ns"


def format_bytes(size: float) -> str:
    """Return a size in bytes, with three digits and a binary unit.

    >>> format_bytes(0), format_bytes(1536), format_bytes(3 << 30), format_bytes(-2048)
    ('0 B', '1.5 KiB', '3 GiB', '-2 KiB')
    """
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(size) >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} B"


def format_count(count: float) -> str:
    """Return a whole number with separators between thousands.

    >>> format_count(1234567)
    '1,234,567'
    """
    return f"{count:,.0f}"
