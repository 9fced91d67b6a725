"""Write a graph as data and read it back, so that a graph can be sent to another process without any code.

    data, tensors = to_data(gm)
    gm = from_data(json.loads(json.dumps(data)), tensors)

The format contains only JSON values:

    {"nodes":   [{"name", "op", "target", "args", "kwargs"}, ...],         in order, the last one the output
     "modules": {path: {"class": "torch.nn.SiLU", "arguments": {...}, "training": true}, ...},
     "tensors": {path: {"parameter": true}, ...},                          "requires_grad": false if frozen,
                                                                           "same_as": path if tied to an earlier one
     "training": true}                                                     of the graph module itself

A separate dict maps paths to tensors: parameters, buffers and constants, including those of the modules. Targets of
functions are names from the table in `targets.py`, and module classes are those of `modules.py`. Arguments are
written as described in `arguments.py`. Metadata of nodes (shapes, source lines) is not written.
"""

from course_lib.graph.data.reader import from_data
from course_lib.graph.data.writer import to_data

__all__ = ["from_data", "to_data"]
