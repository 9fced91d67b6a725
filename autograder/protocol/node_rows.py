"""A node's target as text, the same in every process."""


def target_text(target: object) -> str:
    """Return the path of a module, the name of a method, or the name of a function with its module.

        >>> import operator
        >>> target_text("layers.0.norm"), target_text(operator.add)
        ('layers.0.norm', '_operator.add')

    The `str` of a function that is written in Python holds its address, which another process does not share.
    """
    if isinstance(target, str):
        return target
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or type(target).__name__
    module = getattr(target, "__module__", None)
    return f"{module}.{name}" if module else str(name)
