"""Lossy, on request: replace LayerNorm by BatchNorm. The model computes another function and must be trained again.

LayerNorm normalises each row by the mean and variance of that row. BatchNorm normalises each column by statistics from
training. So in evaluation BatchNorm needs no sums, and `linear_batch_norm` can fold it into a linear layer before or
after it. The disadvantage is that results depend on the statistics. In training they depend on the rest of the batch,
including padding, and a batch of one row is not possible.

    batches = [(tokens,) for tokens in loader]
    fuse(model.eval(), batches[0], (LayerNormToBatchNorm(calibration=batches), "linear_batch_norm"), level="lossy")

Weight and bias are LayerNorm's own parameters. The BatchNorm takes LayerNorm's place in the module tree, so a
checkpoint has the old names and three new ones for the statistics. An old checkpoint lacks them; load it with
`strict=False`, and calibrate or train again.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor

from course_lib.errors import FusionError
from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import one_dtype, tensor_operands
from course_lib.fusion.result import Rejected
from course_lib.fusion.rules import Objection
from course_lib.fusion.surgery import finish


class LayerNormToBatchNorm(FusionPass):
    """Replace each LayerNorm module that normalises the last dimension by a BatchNorm.

    `calibration` are inputs of the program, one sequence a batch, from which each BatchNorm gets its statistics. A
    model in evaluation mode needs them; one in training mode may do without, and finds them while it trains. The pass
    runs only if requested by name. Raises `FusionError` for a tensor in `calibration` instead of a tuple of inputs.

        >>> from course_lib.fusion import fuse
        >>> x = torch.tensor([[0.0, 2.0], [4.0, 8.0]])
        >>> program = nn.Sequential(nn.LayerNorm(2)).eval()
        >>> result = fuse(program, (x,), (LayerNormToBatchNorm(calibration=[(x,)]),), level="lossy")
        >>> result.graph_module(x).round().tolist()  # each column on its own, where LayerNorm takes each row
        [[-1.0, -1.0], [1.0, 1.0]]
    """

    name = "layer_norm_to_batch_norm"
    level = "lossy"
    by_default = False
    patterns: ClassVar = (
        lambda x, normalized_shape, weight, bias, eps: F.layer_norm(x, normalized_shape, weight, bias, eps),
    )

    def __init__(self, *, calibration: Sequence[Sequence[object]] = ()) -> None:
        super().__init__()
        for each in [calibration] if isinstance(calibration, torch.Tensor) else calibration:
            if isinstance(each, torch.Tensor):
                raise FusionError(
                    "LayerNormToBatchNorm got a Tensor in calibration; it expects a tuple of the program's inputs for "
                    "each batch. Batches x and y are given as [(x,), (y,)]."
                )
        self._calibration = calibration
        self._made: list[str] = []

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Replace each LayerNorm that may be replaced, then compute statistics if there are calibration inputs."""
        self._made = []
        num_matches, rejected = super().transform(gm)
        if num_matches and self._calibration:
            finish(gm)
            calibrate(gm, self._made, self._calibration)
        return num_matches, rejected

    def guard(self, match: Match) -> Objection | None:
        """Refuse all but a module that is called once, normalises only the last dimension and can get statistics."""
        norm, anchor = match.calls[0].module, match.anchor
        if norm is None:
            reason = f"{anchor} is no call of nn.LayerNorm, and statistics need a module that keeps them"
            return Objection("statistics of a function", reason)
        others = [node for node in anchor.graph.nodes if node is not anchor and _uses(node, str(anchor.target))]
        if others:
            return Objection("shared", f"{others[0]} uses {anchor.target} too, and each call needs its own statistics")
        operands = tensor_operands(match, *(name for name in ("x", "weight", "bias") if match[name] is not None))
        if isinstance(operands, Objection):
            return operands
        if not isinstance(anchor.meta.get("val"), FakeTensor):
            return Objection("shape unknown", f"the shape of {anchor} is not known; give example inputs")
        shape = operands["x"].shape
        if len(shape) < 2 or tuple(norm.normalized_shape) != shape[-1:] or torch.Size(shape[:-1]).numel() < 2:  # type: ignore[arg-type]  # LayerNorm's
            reason = f"{anchor} normalises over {norm.normalized_shape} of {shape}"
            return Objection("shape", f"{reason}; BatchNorm over the last dimension, of two rows at least")
        if not norm.training and not self._calibration:
            reason = f"{anchor.target} is in evaluation mode, and nothing tells what mean and variance are"
            return Objection("calibration", reason)
        return one_dtype(operands)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return a call of a BatchNorm, on rows, in the place of the LayerNorm."""
        norm, path, owner = match.calls[0].module, str(match.anchor.target), match.anchor.graph.owning_module
        assert norm is not None, "the guard has seen that it is a module"
        assert owner is not None, "a pass works on the graph of a GraphModule"
        owner.set_submodule(path, _batch_norm(norm, match.anchor.meta["val"]))
        self._made.append(path)
        like = match.anchor.meta["val"]

        def normalised(*, x: Any, **_: object) -> object:
            if like.ndim == 2:
                return _call(path, x, like)
            rows: Any = torch.flatten(x, 0, -2)
            with like.fake_mode:
                normed = _call(path, rows, torch.empty_like(like).flatten(0, -2))
            return torch.unflatten(normed, 0, x.shape[:-1])  # type: ignore[arg-type]  # a proxy

        return normalised


def _call(path: str, rows: fx.Proxy, like: torch.Tensor) -> fx.Proxy:
    """Call the BatchNorm, and set the metadata of its result, because running it would count as a batch."""
    node = rows.node.graph.call_module(path, (rows.node,))
    node.meta["val"] = like
    return fx.Proxy(node, rows.tracer)


def _batch_norm(norm: nn.Module, like: torch.Tensor) -> nn.BatchNorm1d:
    """Return a BatchNorm with a LayerNorm's own weight, bias, eps and mode."""
    made = nn.BatchNorm1d(like.shape[-1], eps=norm.eps, affine=False, device=like.device, dtype=like.dtype)  # type: ignore[arg-type]  # LayerNorm's
    made.affine = norm.weight is not None
    made.register_parameter("weight", norm.weight)  # type: ignore[arg-type]  # LayerNorm's
    made.register_parameter("bias", norm.bias)  # type: ignore[arg-type]  # LayerNorm's
    return made.train(norm.training)


def _uses(node: fx.Node, path: str) -> bool:
    target = str(node.target)
    return node.op in ("call_module", "get_attr") and (target == path or target.startswith(f"{path}."))


def calibrate(gm: fx.GraphModule, paths: Sequence[str], batches: Sequence[Sequence[object]]) -> None:
    """Set running mean and variance of the BatchNorms at `paths` to those of all rows that reach them.

    A copy of the graph runs in evaluation mode. The BatchNorms are set in the order in which they run, so that each
    gets results of the earlier ones with their new statistics. Afterwards the output of each BatchNorm has mean 0 and
    variance 1, before weight and bias. The variance is the biased one. Raises `FusionError` if the graph cannot run on
    the inputs.
    """
    trial = copy.deepcopy(gm).eval()
    called = [str(node.target) for node in gm.graph.find_nodes(op="call_module")]
    for path in sorted(paths, key=called.index):
        rows = torch.cat([_reaching(trial, path, batch) for batch in batches]).double()
        for norm in (trial.get_submodule(path), gm.get_submodule(path)):
            assert isinstance(norm, nn.BatchNorm1d), "the paths are those of BatchNorms"
            if list(rows.shape[1:]) != [norm.num_features]:
                raise FusionError(f"{path} got rows of shape {list(rows.shape)} from the calibration inputs.")
            _set(norm, rows, len(batches))


def _set(norm: nn.BatchNorm1d, rows: torch.Tensor, num_batches: int) -> None:
    mean, variance, tracked = norm.running_mean, norm.running_var, norm.num_batches_tracked
    assert mean is not None, "a BatchNorm that keeps statistics"
    assert variance is not None, "a BatchNorm that keeps statistics"
    assert tracked is not None, "a BatchNorm that keeps statistics"
    mean.copy_(rows.mean(0))
    variance.copy_(rows.var(0, unbiased=False))
    tracked.fill_(num_batches)


class _Reached(Exception):  # noqa: N818  # no error: it ends the run before the BatchNorm
    def __init__(self, rows: torch.Tensor) -> None:
        super().__init__()
        self.rows = rows


class _Until(fx.Interpreter):
    """Run a graph up to the call of a module, and raise `_Reached` with the input of the module."""

    def __init__(self, gm: fx.GraphModule, path: str) -> None:
        super().__init__(gm)
        self._path = path

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target == self._path:
            raise _Reached(args[0])
        return super().call_module(target, args, kwargs)


def _reaching(gm: fx.GraphModule, path: str, inputs: Sequence[object]) -> torch.Tensor:
    """Return the input of a module, of shape (rows, channels), for these inputs of the graph."""
    runner = _Until(gm, path)
    runner.extra_traceback = False  # it would print where the run ended
    try:
        with torch.no_grad():
            runner.run(*copy.deepcopy(list(inputs)))
    except _Reached as reached:
        return reached.rows
    except Exception as error:  # whatever an operator says about its operands
        said = " ".join(str(error).split())[:200]
        raise FusionError(f"The graph cannot run on these calibration inputs ({said}).") from error
    raise AssertionError(f"the graph calls {path}")
