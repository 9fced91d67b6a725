"""A target as a backend for `torch.compile`, for inference and for training."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import fx

from course_lib.backends.aten import compiled_ahead
from course_lib.backends.compiled_part import CompileCache, Compiled, Prices
from course_lib.backends.lowered_graph import Lowered, lower
from course_lib.backends.lowering_report import Report
from course_lib.backends.target import Target
from course_lib.errors import BackendError


class Backend:
    """A backend for `torch.compile` that compiles the supported parts of each graph for a target, and keeps a report.

        backend = Backend(ToyTarget())
        compiled = torch.compile(model, backend=backend)
        compiled(x).sum().backward()
        backend.report()

    AOTAutograd divides a program with gradients into a forward and a backward graph. Each is lowered separately, so
    training works. When sizes change, `torch.compile` requests a new graph, first with these sizes, then with symbolic
    sizes. A part of a graph with symbols is compiled when it is called, once for each kind of inputs.

    `graphs` are the lowered graphs in the order in which they came, and `names` tells for each whether it is a
    "forward", a "backward" or an "inference" graph. The backend is not registered by name: pass the object itself.

    By `prices`, a part that is too small is left to eager PyTorch; None means `Prices()`. `cache` holds the compiled
    parts, and several backends can share it; None means a new one. Raises `BackendError` if `target` is no `Target`.
    """

    def __init__(
        self,
        target: Target,
        *,
        prices: Prices | None = None,
        cache: CompileCache[Compiled] | None = None,
    ) -> None:
        if not isinstance(target, Target):
            raise BackendError(f"Backend takes a Target, such as ToyTarget(); got {target!r}.")
        self.target = target
        self.prices = Prices() if prices is None else prices
        self.cache: CompileCache[Compiled] = CompileCache() if cache is None else cache
        self.graphs: list[Lowered] = []
        self.names: list[str] = []
        self._compile = compiled_ahead(*(self._lowering(name) for name in ("forward", "backward", "inference")))

    def __call__(self, gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """Return a function that computes the graph that Dynamo captured."""
        return self._compile(gm, example_inputs)

    def report(self) -> Report:
        """Return a report on all graphs that were captured so far."""
        return Report(self.target.name, tuple(self.names), tuple(self.graphs), self.cache.hits, self.cache.misses)

    def __repr__(self) -> str:
        return f"Backend for {self.target.name}: {len(self.graphs)} graphs so far; see report() for more"

    def _lowering(self, name: str) -> Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]:
        def compile_graph(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
            lowered = lower(gm, example_inputs, self.target, prices=self.prices, cache=self.cache)
            self.graphs.append(lowered)
            self.names.append(name)
            return lowered

        return compile_graph
