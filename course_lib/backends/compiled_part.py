"""One part of a graph, compiled for each kind of inputs unless the cache has it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import fx, nn

from course_lib.backends.aten import outside_of_tracing
from course_lib.backends.cache import CompileCache, Key, facts_of, fingerprint
from course_lib.backends.parts import Part
from course_lib.backends.prices import Prices
from course_lib.backends.support import target_name
from course_lib.backends.target import Executable, Target
from course_lib.fusion import Objection
from course_lib.graph import propagate_shapes

Compiled = Executable | Objection


class CompiledPart(nn.Module):
    """One part, compiled for each kind of inputs it is called with; it runs eagerly where that is not possible."""

    def __init__(self, part: fx.GraphModule, target: Target, prices: Prices, cache: CompileCache[Compiled]) -> None:
        super().__init__()
        self.eager = part
        self._target, self._prices, self._cache = target, prices, cache
        self._graph: Key = (target.identity, prices, fingerprint(part.graph))

    def compiled_for(self, inputs: Sequence[object]) -> Compiled:
        """Return the executable for inputs like these, or why there is none; compile it if it is not in the cache."""
        return self._cache.get((self._graph, facts_of(inputs)), lambda: self._compile(inputs))

    def forward(self, *inputs: object) -> tuple[torch.Tensor, ...]:
        """Compute the part."""
        found = self.compiled_for(inputs)
        return tuple(self.eager(*inputs) if isinstance(found, Objection) else found(*inputs))

    def _compile(self, inputs: Sequence[object]) -> Compiled:
        graph = fx.Graph()  # a copy, for its nodes get the shapes of these inputs
        graph.output(graph.graph_copy(self.eager.graph, {}))
        with outside_of_tracing():
            part = propagate_shapes(fx.GraphModule(self.eager, graph, class_name="Part"), inputs)
            compiled = self._target.compile(part)
            if isinstance(compiled, Objection):
                return compiled
            return self._prices.objection(part, compiled) or compiled


@dataclass(frozen=True, repr=False)
class PartOutcome:
    """Whether and how a part was compiled."""

    name: str
    operators: tuple[str, ...]
    compiled: Compiled | None  # None where sizes are symbols, and the part is compiled when it is first called
    found_in_cache: bool = False

    @property
    def kept(self) -> bool:
        """Whether the target computes the part."""
        return not isinstance(self.compiled, Objection)

    def __repr__(self) -> str:
        what = "compiled when it is called" if self.compiled is None else str(self.compiled)
        return f"{self.name}, {len(self.operators)} operators: {what}"


def outcome_of(part: Part, module: CompiledPart, cache: CompileCache[Compiled] | None) -> PartOutcome:
    """Compile a part for the inputs that its graph has, unless there is no cache because sizes are symbols."""
    operators = tuple(target_name(node) for node in part.nodes)
    if cache is None:
        return PartOutcome(part.name, operators, None)
    hits = cache.hits
    compiled = module.compiled_for([node.meta["val"] for node in part.inputs])
    return PartOutcome(part.name, operators, compiled, found_in_cache=cache.hits > hits)
