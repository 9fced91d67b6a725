"""The passes by name, in the order in which they run."""

from collections.abc import Iterable, Mapping, Sequence

from course_lib.errors import FusionError
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.passes.bias_dropout_residual_layer_norm import FuseBiasDropoutResidualLayerNorm
from course_lib.fusion.passes.bias_gelu import BiasGelu
from course_lib.fusion.passes.residual_layer_norm import ResidualLayerNorm

_CLASSES: Sequence[type[GraphPass]] = (
    BiasGelu,
    FuseBiasDropoutResidualLayerNorm,  # before the next, which would take its two last operators
    ResidualLayerNorm,
)

PASSES: Mapping[str, type[GraphPass]] = {cls.name: cls for cls in _CLASSES}
LEVELS = ("exact", "lossy")


def chosen(passes: Iterable[str | GraphPass] | None, level: str) -> list[GraphPass]:
    """Return the passes to run: those that were named, or all exact ones; raise `FusionError` for what cannot be meant.

    A lossy pass changes what a program computes, so it runs only if it is named and `level` is "lossy".
    """
    if level not in LEVELS:
        raise FusionError(f"fuse got level={level!r}; it knows {', '.join(map(repr, LEVELS))}.")
    if isinstance(passes, (str, GraphPass)):
        raise FusionError(f"fuse got passes={passes!r}; it expects several, such as passes=({passes!r},).")
    if passes is None:
        return [cls() for cls in PASSES.values() if cls.level == "exact"]
    found = [_pass(one) for one in passes]
    for one in found:
        if one.level == "lossy" and level != "lossy":
            raise FusionError(
                f'{one.name} changes what the program computes; say level="lossy" if that is what you want.'
            )
    return found


def _pass(given: str | GraphPass) -> GraphPass:
    if isinstance(given, GraphPass):
        return given
    if given not in PASSES:
        raise FusionError(f"fuse knows no pass {given!r}; it knows {', '.join(PASSES)}.")
    return PASSES[given]()
