"""Erase nodes that do not affect the result and have no other effect.

The pass keeps nodes that change a tensor in place (`h.add_(1)`, `copy_`, `out=`). It keeps nodes that draw random
numbers, because erasing one would change all later draws. It also keeps assertions, switches such as autocast, calls
of Python functions from outside PyTorch, and modules with hooks, with running statistics or from outside torch.nn.
Inputs and parameters stay too.
"""

from torch import fx

from course_lib.fusion.effects import is_pure
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.result import Rejected
from course_lib.fusion.surgery import erase


class DeadCode(GraphPass):
    """Erase nodes without users and without effects."""

    name = "dead_code"

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Erase in reverse order, so that operands of erased nodes are checked afterwards; count the nodes."""
        erased = 0
        for node in reversed(list(gm.graph.nodes)):
            if not node.users and node.op not in ("placeholder", "output") and is_pure(node):
                erase((node,))
                erased += 1
        return erased, []
