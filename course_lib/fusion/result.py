"""What a pass gives back: a new graph, and an account of what was fused and what was not."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Rejected:
    """Nodes that look like the pattern of a pass, and why the pass left them alone."""

    nodes: tuple[str, ...]  # names, in graph order
    rule: str  # a short name, the same for the same reason
    reason: str  # a sentence for the person who wonders why this was not fused

    def __str__(self) -> str:
        return f"{', '.join(self.nodes)}: {self.reason}"


@dataclass(frozen=True, repr=False)
class FusionResult:
    """The graph after a pass. The graph that the pass was given is as it was."""

    graph_module: torch.fx.GraphModule
    num_matches: int
    rejected: tuple[Rejected, ...] = ()

    def __str__(self) -> str:
        fused = f"{self.num_matches} fused, {len(self.rejected)} left alone"
        return "\n".join([fused, *(f"  {refusal}" for refusal in self.rejected)])

    __repr__ = __str__  # a notebook, a terminal and a log all show the readable form
