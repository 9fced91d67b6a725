"""Likely mistakes in a kernel for the end of a block: each is made in the program itself, and compared with the answer.

So a message can say what is wrong with numbers that differ, and not only by how much.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from autograder.host import comparison
from autograder.host.traced import Traced
from course_lib.kernels.dropout import dropout_factors, uniform_numbers
from course_lib.kernels.replayed_draws import ReplayedDraws, position_factors

SAME = 1e-7  # of the largest number of an output; the program's numbers in fp64 are further away from a mistake's
Factors = Callable[[torch.Tensor, float, torch.Tensor], torch.Tensor]
Norm = Callable[[torch.Tensor, Sequence[int], torch.Tensor, torch.Tensor, float], torch.Tensor]
Change = Callable[[Traced], tuple[Traced, Mapping[str, torch.Tensor]]]


def _unchanged(program: Traced) -> tuple[Traced, Mapping[str, torch.Tensor]]:
    return program, {}


@dataclass(frozen=True)
class Mistake:
    """One way to be wrong, as a change of the program, and a sentence about it."""

    says: str
    factors: Factors = position_factors
    norm: Norm = F.layer_norm
    change: Change = field(default=_unchanged)


def named_mistake(
    program: Traced, found: torch.Tensor, inputs: Sequence[torch.Tensor], draws: int, by_position: Sequence[int]
) -> str:
    """Return the sentence about the mistake that gives `found` on these inputs, in fp64; empty if none does."""
    if _same(found, _made(Mistake(""), program, inputs, draws, by_position)):
        return ""
    for mistake in MISTAKES:
        if _same(found, _made(mistake, program, inputs, draws, by_position)):
            return mistake.says
    return ""


def _same(found: torch.Tensor, made: torch.Tensor) -> bool:
    return comparison.alike(found, made, rtol=0, atol=SAME * float(made.abs().max()))


def _made(
    mistake: Mistake, program: Traced, inputs: Sequence[torch.Tensor], draws: int, by_position: Sequence[int]
) -> torch.Tensor:
    changed, parameters = mistake.change(program)
    with torch.no_grad(), _Made(mistake, draws, by_position):
        output: torch.Tensor = changed.reference(*inputs, parameters=parameters)
    return output


class _Made(TorchFunctionMode):
    """Compute dropouts and norms as a mistake has them; only draws by position are mistaken."""

    def __init__(self, mistake: Mistake, draws: int, by_position: Sequence[int]) -> None:
        super().__init__()
        self._mistake, self._by_position = mistake, by_position
        self._seeds, self._draws = ReplayedDraws(draws), 0

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if func is F.layer_norm:
            return self._normed(*args, **named)
        if func is F.dropout:
            return self._dropped(*args, **named)
        return func(*args, **named)

    def _normed(
        self,
        input: torch.Tensor,  # noqa: A002  # the names are those of PyTorch's functions
        normalized_shape: Sequence[int],
        weight: torch.Tensor,
        bias: torch.Tensor,
        eps: float,
    ) -> torch.Tensor:
        return self._mistake.norm(input, normalized_shape, weight, bias, eps)

    def _dropped(self, input: torch.Tensor, p: float, **_: bool) -> torch.Tensor:  # noqa: A002  # as above
        by_position = self._draws in self._by_position
        self._draws += 1
        return input * (self._mistake.factors if by_position else dropout_factors)(self._seeds.seed(input), p, input)


def _kept(seed: torch.Tensor | int, p: float, like: torch.Tensor, place: str = "position") -> torch.Tensor:
    columns = like.shape[-1]
    position = torch.arange(like.numel()).view(like.shape)
    row, column = position // columns, position % columns
    block = 1 << max(0, columns - 1).bit_length()
    places = {
        "position": position,
        "column": column,
        "row": row,
        "row * BLOCK + column": row * block + column,
        "column * rows + row": column * (like.numel() // columns) + row,
    }
    return (uniform_numbers(int(seed), places[place]) >= torch.tensor(p, dtype=torch.float32)).to(like.dtype)


def _at(place: str) -> Factors:
    return lambda seed, p, like: _kept(seed, p, like, place) / (1 - p)


def _whole_axis(rows_of_block: int) -> Norm:
    """Return the norm whose mean goes along the rows of a block in place of a row's columns."""

    def norm(
        x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> torch.Tensor:
        matrix, columns = x.reshape(-1, shape[0]), shape[0]
        blocks = matrix.split(rows_of_block or len(matrix))
        centred = torch.cat([block - block.sum(0, keepdim=True) / columns for block in blocks])
        rstd = torch.rsqrt(centred.square().sum(-1, keepdim=True) / columns + eps)
        return (centred * rstd * weight + bias).view(x.shape)

    return norm


def _sample_variance(
    x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    rstd = torch.rsqrt(x.var(-1, keepdim=True) + eps)
    return (x - x.mean(-1, keepdim=True)) * rstd * weight + bias


def _without_bias(program: Traced) -> tuple[Traced, Mapping[str, torch.Tensor]]:
    modules = dict(program.module.named_modules())
    names = [
        f"{node.args[0].target}.bias"
        for node in program.module.graph.find_nodes(op="call_module")
        if isinstance(modules[node.target], nn.Dropout) and _is_linear(node.args[0], modules)
    ]
    return program, {name: torch.zeros_like(program.module.get_parameter(name).double()) for name in names}


def _without_residual(program: Traced) -> tuple[Traced, Mapping[str, torch.Tensor]]:
    modules = dict(program.module.named_modules())
    graph = fx.Graph()
    graph.output(graph.graph_copy(program.module.graph, {}))
    for node in graph.find_nodes(op="call_function", target=operator.add):
        dropped = [a for a in node.args if isinstance(modules.get(str(getattr(a, "target", ""))), nn.Dropout)]
        if dropped and _is_linear(dropped[0].args[0], modules):
            node.replace_all_uses_with(dropped[0])
    return replace(program, module=fx.GraphModule(program.module, graph)), {}


def _is_linear(node: Any, modules: Mapping[str, nn.Module]) -> bool:
    return isinstance(node, fx.Node) and isinstance(modules.get(str(node.target)), nn.Linear)


POSITION = "Its position is the number of the element, row * columns + column."
MISTAKES: Sequence[Mistake] = (
    Mistake("in your kernels nothing is dropped.", factors=lambda seed, p, like: torch.ones_like(like)),
    Mistake("in your kernels what is kept is not divided by 1 - p.", factors=_kept),
    Mistake(
        "in your kernels what is kept is multiplied by 1 - p; divide by it.",
        factors=lambda seed, p, like: _kept(seed, p, like) * (1 - p),
    ),
    Mistake(
        "in your kernels the mask is inverted: an element is kept where tl.rand is at least p.",
        factors=lambda seed, p, like: (1 - _kept(seed, p, like)) / (1 - p),
    ),
    Mistake(f"in your kernels all rows have the same mask. {POSITION}", factors=_at("column")),
    Mistake(f"in your kernels whole rows are dropped. {POSITION}", factors=_at("row")),
    Mistake(f"in your kernels the mask is that of row * BLOCK + column. {POSITION}", _at("row * BLOCK + column")),
    Mistake(f"in your kernels the mask is that of column * rows + row. {POSITION}", _at("column * rows + row")),
    Mistake(
        "in your kernels the mask is that of seed 0: read the seed with tl.load, and pass it to tl.rand.",
        factors=lambda seed, p, like: _kept(0, p, like) / (1 - p),
    ),
    Mistake(
        "in your kernels eps is left out: it is added to the variance.",
        norm=lambda x, shape, weight, bias, eps: F.layer_norm(x, shape, weight, bias, 0.0),
    ),
    Mistake(
        "in your kernels eps is added to the standard deviation; add it to the variance.",
        norm=lambda x, shape, weight, bias, eps: (
            (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, correction=0) + eps) * weight + bias
        ),
    ),
    Mistake(
        "in your kernels the weight of the norm is left out.",
        norm=lambda x, shape, weight, bias, eps: F.layer_norm(x, shape, None, bias, eps),
    ),
    Mistake(
        "in your kernels the bias of the norm is left out.",
        norm=lambda x, shape, weight, bias, eps: F.layer_norm(x, shape, weight, None, eps),
    ),
    Mistake(
        "in your kernels weight and bias of the norm changed places.",
        norm=lambda x, shape, weight, bias, eps: F.layer_norm(x, shape, bias, weight, eps),
    ),
    Mistake("in your kernels the variance is divided by n - 1; LayerNorm divides by n.", norm=_sample_variance),
    *(
        Mistake(
            "in your kernels the mean goes along the wrong axis: a row has a mean of its own.", norm=_whole_axis(rows)
        )
        for rows in (0, 2, 4, 8, 16, 32, 64, 128)
    ),
    Mistake("in your kernels the bias of the linear layer is not added.", change=_without_bias),
    Mistake("in your kernels the residual is not added.", change=_without_residual),
)
