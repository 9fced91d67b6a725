"""The passes by name, in the order in which they run."""

from collections.abc import Iterable, Mapping, Sequence

from course_lib.errors import FusionError
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.passes.add_scaled import AddScaled
from course_lib.fusion.passes.bias_dropout_residual_layer_norm import BiasDropoutResidualLayerNorm
from course_lib.fusion.passes.bias_gelu import BiasGelu
from course_lib.fusion.passes.common_subexpressions import CommonSubexpressions
from course_lib.fusion.passes.constant_folding import ConstantFolding
from course_lib.fusion.passes.conv_batch_norm import ConvBatchNorm
from course_lib.fusion.passes.dead_code import DeadCode
from course_lib.fusion.passes.formulas import Formulas
from course_lib.fusion.passes.gelu_tanh import GeluTanh
from course_lib.fusion.passes.gelu_to_relu import GeluToRelu
from course_lib.fusion.passes.layer_norm_to_batch_norm import LayerNormToBatchNorm
from course_lib.fusion.passes.linear_batch_norm import LinearBatchNorm
from course_lib.fusion.passes.matmul_scale import MatmulScale
from course_lib.fusion.passes.memory_order import MemoryOrder
from course_lib.fusion.passes.normalise import Normalise
from course_lib.fusion.passes.out_of_place import OutOfPlace
from course_lib.fusion.passes.qkv_merge import QkvMerge
from course_lib.fusion.passes.residual_layer_norm import ResidualLayerNorm
from course_lib.fusion.passes.sdpa import Sdpa

_CLASSES: Sequence[type[GraphPass]] = (
    OutOfPlace,  # the first, because the others leave alone what is written in place
    Normalise,
    ConstantFolding,
    CommonSubexpressions,
    Formulas,  # before the fusions, which look for the operators
    LayerNormToBatchNorm,  # before the two that may fold what it makes
    ConvBatchNorm,
    LinearBatchNorm,
    QkvMerge,
    Sdpa,  # before the next, which would move the scale that it looks for
    MatmulScale,
    GeluTanh,
    GeluToRelu,
    BiasGelu,
    BiasDropoutResidualLayerNorm,  # before the next, which would take its two last operators
    ResidualLayerNorm,
    AddScaled,
    DeadCode,
    MemoryOrder,  # the last, since what it orders is then final
)

PASSES: Mapping[str, type[GraphPass]] = {cls.name: cls for cls in _CLASSES}
LEVELS = ("exact", "lossy")


def chosen(passes: Iterable[str | GraphPass] | None, level: str) -> list[GraphPass]:
    """Return the passes to run: those that were named, or those that run by default.

    A lossy pass changes what a program computes, so it runs only if it is named and `level` is "lossy". Raises
    `FusionError` for invalid arguments.
    """
    if level not in LEVELS:
        raise FusionError(f"fuse got level={level!r}; it knows {', '.join(map(repr, LEVELS))}.")
    if isinstance(passes, (str, GraphPass)) or _is_class(passes):
        given = _spelt(passes)
        raise FusionError(f"fuse got passes={given}; it expects several, such as passes=({given},).")
    if passes is None:
        by_default = [cls() for cls in PASSES.values() if cls.by_default]
        return [DeadCode(), *by_default]  # a value that is read for nothing could not be fused away
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
    if _is_class(given):
        raise FusionError(f"fuse got the class {_spelt(given)[:-2]} as a pass; give an object of it: {_spelt(given)}.")
    if given not in PASSES:
        raise FusionError(f"fuse knows no pass {given!r}; it knows {', '.join(PASSES)}.")
    return PASSES[given]()


def _is_class(given: object) -> bool:
    return isinstance(given, type) and issubclass(given, GraphPass)


def _spelt(given: object) -> str:
    """Return how a caller writes a pass: its name as text, or a call of its class."""
    if isinstance(given, str):
        return repr(given)
    return f"{given.__name__ if isinstance(given, type) else type(given).__name__}()"
