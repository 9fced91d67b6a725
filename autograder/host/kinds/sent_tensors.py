"""The tensors that the host sends with a program or a model, and what an answer may do to them.

An answer that folds nothing returns each of them bit for bit. The host compares them before it writes its own values
into the returned graph; otherwise an answer that destroys the weights would look right.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from autograder.host.artifacts import Artifact
from autograder.host.exercise import CheckFailedError
from autograder.protocol import GraphData

ADVICE = "The result must keep the parameters and buffers that it was given, with their values and under their names."


@dataclass(frozen=True)
class Sent:
    """The tensors of one request, by path; tied tensors have one entry for each path."""

    tensors: Mapping[str, torch.Tensor]
    trained: Collection[str]
    """The paths of parameters that take a gradient."""

    @classmethod
    def of_graph(cls, graph: GraphData, tensors: Mapping[str, torch.Tensor]) -> "Sent":
        """Return the tensors of a graph that is written as data."""
        entries = graph["tensors"]
        return cls(
            {path: tensors[entry.get("same_as", path)] for path, entry in entries.items()},
            {path for path, entry in entries.items() if _takes_a_gradient(entry)},
        )

    @classmethod
    def of_module(cls, module: nn.Module) -> "Sent":
        """Return the tensors of a module."""
        parameters = module.named_parameters(remove_duplicate=False)
        state = {name: tensor.detach().clone() for name, tensor in module.state_dict(keep_vars=True).items()}
        return cls(state, {name for name, parameter in parameters if parameter.requires_grad})

    def require_kept(self, artifact: Artifact, told: str) -> None:
        """Raise `CheckFailedError` if a tensor of the graph has a sent tensor's path and is not that tensor.

        The message begins with `told`. New paths are allowed: a right answer may need a constant of its own.
        """
        for path, entry in artifact.graph["tensors"].items():
            if path not in self.tensors:
                continue
            difference = _difference(artifact.tensors[entry.get("same_as", path)], self.tensors[path])
            if not difference and path in self.trained and not _takes_a_gradient(entry):
                difference = "it takes no gradient now"
            if difference:
                raise CheckFailedError(
                    f"{told}the tensor `{path}` came back changed: {difference}. {ADVICE}", changes=True
                )

    def copied(self, artifact: Artifact) -> str:
        """Return a sentence about a new tensor of the graph that copies a sent one; empty if there is none."""
        sent = {path: tensor for path, tensor in self.tensors.items() if tensor.numel()}
        for new, tensor in artifact.tensors.items():
            copies = (path for path, other in sent.items() if new not in sent and not _difference(tensor, other))
            if path := next(copies, ""):
                return (
                    f"The tensor `{new}` is a copy of `{path}`, which does not follow when `{path}` is trained or "
                    f"loaded: read `{path}` itself, by get_attr."
                )
        return ""


def _takes_a_gradient(entry: Mapping[str, object]) -> bool:
    return entry["parameter"] is True and entry.get("requires_grad", True) is True


def _difference(found: torch.Tensor, sent: torch.Tensor) -> str:
    """Return what differs, as a clause; empty if the tensors are equal bit for bit."""
    if found.dtype != sent.dtype:
        return f"its dtype is {found.dtype}, and {sent.dtype} was sent"
    if found.shape != sent.shape:
        return f"its shape is {tuple(found.shape)}, and {tuple(sent.shape)} was sent"
    bits, expected = (t.reshape(-1, 1).contiguous().view(torch.uint8) for t in (found, sent))
    wrong = (bits != expected).any(dim=1).nonzero().flatten()
    if not len(wrong):
        return ""
    first = int(wrong[0])
    value, given = (t.reshape(-1)[first].item() for t in (found, sent))
    return f"{len(wrong)} of {sent.numel()} values differ, the first is {value:.6g} where {given:.6g} was sent"


def other_values(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same form with other values: half of each, which keeps signs and positive variances.

    Answers get such tensors before the real ones, so that one that keeps what it was given first computes with these.
    """
    return tensor * 0.5 if tensor.is_floating_point() else tensor
