"""The interface of a target: the operators it takes, and its compiler."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import fx

from course_lib.fusion import Objection


class Executable(ABC):
    """A part, compiled for inputs of one kind."""

    launches: int = 0  # how many kernels one run launches
    bytes_moved: int = 0  # how much one run reads from memory and writes to it
    remark: str = ""  # a remark for the report

    @abstractmethod
    def __call__(self, *inputs: object) -> Sequence[torch.Tensor]:
        """Return one tensor for each output of the part."""


class Target(ABC):
    """A machine to compile for: the operators it takes, and its compiler."""

    name: str = "target"  # what it is called in reports

    @property
    def identity(self) -> object:
        """Return the key of this target in a cache; two targets that compile alike may have equal keys."""
        return self  # and not its id, which another object may have later

    @abstractmethod
    def objection(self, node: fx.Node) -> Objection | None:
        """Return why the target does not take a node, or None if it does; see `Support.objection`.

        Sizes may be symbols: look at operators, types and ranks here, and at sizes in `compile`.
        """

    @abstractmethod
    def compile(self, part: fx.GraphModule) -> Executable | Objection:
        """Return the compiled part, or an objection; then eager PyTorch runs the part.

        Each node of the part has passed `objection`, and its `meta["val"]` has the sizes of the inputs that the
        executable will be called with. The part gives a tuple.
        """
