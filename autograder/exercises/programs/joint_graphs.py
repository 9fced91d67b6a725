"""Random joint graphs as rows: a program of few operators, and its backward by the rules of differentiation.

A graph can be partitioned: forward runs first, then backward runs from the saved values and recomputes the others.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from autograder.host.draw import Draw

Row = Mapping[str, Any]
Shape = tuple[int, ...]

UNARY = ("tanh", "sigmoid", "sin", "relu", "gelu")
FLOPS = {"mul": 1, "add": 1, "relu": 1, "sin": 1, "tanh": 2, "sigmoid": 2, "gelu": 3}  # per element
TAGS = {"alias": "view", "t": "view", "mm": "product", "mean": "reduction", "sum": "reduction", "bernoulli": "random"}


def _keep(shape: Shape) -> Tensor:
    """Return a random dropout mask, a new one for each call."""
    return (torch.rand(shape, dtype=torch.float64) < 0.7) / 0.7


def _summed(value: Tensor, shape: Shape) -> Tensor:
    """Return the sum over all dimensions in which `value` is larger than `shape`."""
    while value.dim() > len(shape):
        value = value.sum(0)
    wide = [d for d, size in enumerate(shape) if value.shape[d] != size]
    return value.sum(wide, keepdim=True) if wide else value


def _gelu_slope(x: Tensor) -> Tensor:
    return 0.5 * (1 + torch.erf(x / 2**0.5)) + x * torch.exp(-x * x / 2) / (2 * torch.pi) ** 0.5


COMPUTE: Mapping[str, Callable[..., Tensor]] = {  # functions of the result's shape and the operands
    "tanh": lambda shape, x: x.tanh(),
    "sigmoid": lambda shape, x: x.sigmoid(),
    "sin": lambda shape, x: x.sin(),
    "cos": lambda shape, x: x.cos(),
    "relu": lambda shape, x: x.relu(),
    "gelu": lambda shape, x: torch.nn.functional.gelu(x),
    "mul": lambda shape, a, b: a * b,
    "add": lambda shape, a, b: a + b,
    "alias": lambda shape, x: x,
    "t": lambda shape, x: x.t(),
    "mm": lambda shape, a, b: a @ b,
    "mean": lambda shape, x: x.mean(-1, keepdim=True),
    "sum": lambda shape, x: _summed(x, shape),
    "bernoulli": lambda shape: _keep(shape),
    "tanh_backward": lambda shape, g, y: g * (1 - y * y),
    "sigmoid_backward": lambda shape, g, y: g * y * (1 - y),
    "relu_backward": lambda shape, g, y: g * (y > 0),
    "gelu_backward": lambda shape, g, x: g * _gelu_slope(x),
    "mean_backward": lambda shape, g: g.expand(shape) / shape[-1],
}


@dataclass
class JointGraph:
    """Rows that are added step by step: first inputs and forward, then backward by `differentiate`."""

    rows: list[Row] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)
    gradients: dict[str, str] = field(default_factory=dict)  # names of the inputs' gradients, after `differentiate`

    def input(self, *shape: int) -> str:
        """Add an input and return its name."""
        number = sum(r["tag"] == "input" for r in self.rows)
        return self._add(f"primals_{number + 1}", "input", (), shape, "forward", "input")

    def call(self, op: str, *args: str, shape: Shape | None = None, part: str = "forward") -> str:
        """Add a row that computes a value, and return its name."""
        number = sum(r["op"] == op for r in self.rows)
        name = f"{op}_{number}" if number else op
        shape = self.shapes[args[0]] if shape is None else shape
        return self._add(name, op, args, shape, part, TAGS.get(op, "pointwise"))

    def _add(self, name: str, op: str, args: Sequence[str], shape: Shape, part: str, tag: str) -> str:
        elements = torch.Size(shape).numel()
        size = elements if op == "bernoulli" else 4 * elements
        flops = elements * FLOPS.get(op, 2) if tag == "pointwise" else 0
        if tag in ("product", "reduction"):
            flops = 2 * torch.Size(self.shapes[args[0]]).numel() * (shape[-1] if op == "mm" else 1)
        self.rows.append(
            {"name": name, "op": op, "args": list(args), "part": part, "tag": tag, "bytes": size, "flops": flops}
        )
        self.shapes[name] = tuple(shape)
        return name

    @property
    def forward(self) -> list[Row]:
        """Return the rows of forward, inputs included."""
        return [r for r in self.rows if r["part"] == "forward"]

    def differentiate(self) -> None:
        """Add the backward of the last row."""
        self.rows.sort(key=lambda r: r["tag"] != "input")  # inputs first; the others keep their order
        ahead = self.forward
        last = ahead[-1]["name"]
        arriving = {last: self._add("tangents_1", "input", (), self.shapes[last], "backward", "input")}
        for row in reversed(ahead):
            if row["name"] in arriving:
                for operand, gradient in self._pulled(row, arriving[row["name"]]):
                    old = arriving.get(operand)
                    arriving[operand] = self._behind("add", old, gradient) if old else gradient
        self.gradients = {r["name"]: arriving[r["name"]] for r in ahead if r["tag"] == "input"}

    def _behind(self, op: str, *args: str, shape: Shape | None = None) -> str:
        return self.call(op, *args, shape=shape, part="backward")

    def _pulled(self, row: Row, g: str) -> list[tuple[str, str]]:
        """Return the operands of a row that have a gradient, each with the gradient's name."""
        op, name, args = row["op"], row["name"], row["args"]
        if op in ("tanh", "sigmoid", "relu"):
            return [(args[0], self._behind(f"{op}_backward", g, name))]
        if op == "gelu":
            return [(args[0], self._behind("gelu_backward", g, args[0]))]
        if op == "sin":
            return [(args[0], self._behind("mul", g, self._behind("cos", args[0])))]
        if op == "mean":
            return [(args[0], self._behind("mean_backward", g, shape=self.shapes[args[0]]))]
        if op == "mm":
            left, right = args
            across = self._behind("t", right, shape=self.shapes[right][::-1])
            down = self._behind("t", left, shape=self.shapes[left][::-1])
            return [
                (left, self._behind("mm", g, across, shape=self.shapes[left])),
                (right, self._behind("mm", down, g, shape=self.shapes[right])),
            ]
        if op == "mul":
            pairs = [(a, b) for a, b in (args, args[::-1]) if not a.startswith("bernoulli")]
            return [(a, self._fitted(self._behind("mul", g, b), a)) for a, b in pairs]
        return [(a, self._fitted(g, a)) for a in args]  # add and alias return `g` itself; a mask has no operands

    def _fitted(self, gradient: str, operand: str) -> str:
        """Return the gradient, summed over the dimensions in which the operand was broadcast."""
        shape = self.shapes[operand]
        return gradient if self.shapes[gradient] == shape else self._behind("sum", gradient, shape=shape)


KINDS = ("unary", "gate", "gate", "merge", "products", "product", "mean", "alias")


@dataclass
class RandomJoint(JointGraph):
    """A graph that is built from pieces of programs, each applied to the result of the previous one."""

    draw: Draw = field(kw_only=True)
    value: str = ""
    earlier: list[str] = field(default_factory=list)  # earlier values with the shape of `value`

    def grow(self, kind: str) -> None:
        """Add one piece."""
        before, shape = self.value, self.shapes[self.value]
        if kind == "unary":
            self.value = self.call(self.draw.choice(UNARY), before)
        elif kind == "gate":  # backward may read only these two results
            left, right = (self.call(op, before) for op in self.draw.sample(UNARY, 2))
            self.value = self.call("mul", left, right)
        elif kind == "merge" and self.earlier:
            self.value = self.call(self.draw.choice(("mul", "add")), before, self.draw.choice(self.earlier[-4:]))
        elif kind == "mean":
            self.value = self.call("mul", before, self.call("mean", before, shape=(shape[0], 1)))
        elif kind == "mask":
            self.value = self.call("mul", before, self.call("bernoulli", shape=shape))
        elif kind == "alias":
            self.value = self.call("alias", before)
        else:
            self._multiply(2 if kind == "products" else 1)
            return
        self.earlier.append(before)

    def _multiply(self, count: int) -> None:
        """Add a matrix product, or the sum of two products; backward reads neither product of a sum."""
        rows, width = self.shapes[self.value]
        wide = self.draw.integer(6, 12)
        products = [self.call("mm", self.value, self.input(width, wide), shape=(rows, wide)) for _ in range(count)]
        self.value = products[0] if count == 1 else self.call("add", *products)
        self.earlier = []


def random_joint(draw: Draw, steps: int, *, masks: int = 0) -> JointGraph:
    """Return a random program of `steps` pieces, of which `masks` are dropouts, and its backward."""
    graph = RandomJoint(draw=draw)
    graph.value = graph.input(draw.integer(6, 12), draw.integer(6, 12))
    at = draw.sample(range(1, steps), masks)
    for step in range(steps):
        graph.grow("mask" if step in at else draw.choice(KINDS))
    graph.differentiate()
    return graph


Values = dict[str, Tensor]


def run_forward(graph: JointGraph, draw: Draw) -> Values:
    """Return all values of forward and the gradient of its result, in double precision, with random inputs."""
    values: Values = {}
    for row in graph.rows:
        if row["tag"] == "input":
            values[row["name"]] = draw.normal(*graph.shapes[row["name"]], dtype=torch.float64)
        elif row["part"] == "forward":
            values[row["name"]] = _computed(graph, row, [values[a] for a in row["args"]])
    return values


def run_backward(graph: JointGraph, forward: Values, saved: Collection[str]) -> Values:
    """Return the gradients of the inputs, computed from inputs and saved values; other values are recomputed."""
    by_name = {r["name"]: r for r in graph.rows}
    values = {n: v for n, v in forward.items() if n in saved or by_name[n]["tag"] == "input"}

    def value(name: str) -> Tensor:
        if name not in values:
            row = by_name[name]
            values[name] = _computed(graph, row, [value(a) for a in row["args"]])
        return values[name]

    return {primal: value(gradient) for primal, gradient in graph.gradients.items()}


def _computed(graph: JointGraph, row: Row, args: Sequence[Tensor]) -> Tensor:
    return COMPUTE[row["op"]](graph.shapes[row["name"]], *args)
