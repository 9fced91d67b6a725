"""Write a graph as data and read it back, so that a graph can be sent to another process without any code.

    data, tensors = to_data(gm)
    gm = from_data(json.loads(json.dumps(data)), tensors)

The format, which holds nothing but JSON values:

    {"nodes":   [{"name", "op", "target", "args", "kwargs"}, ...],         in order, the last one the output
     "modules": {path: {"class": "torch.nn.SiLU", "arguments": {...}, "training": true}, ...},
     "tensors": {path: {"parameter": true}, ...},                          "requires_grad": false if frozen,
                                                                           "same_as": path if tied to an earlier one
     "training": true}                                                     of the graph module itself

Beside it goes a dict from path to tensor: parameters, buffers and constants, also those of the modules. Targets of
functions are names from the table in `targets.py`, modules are those of `modules.py`, and arguments are
written as described in `arguments.py`. Metadata of nodes (shapes, source lines) is left behind.
"""

from course_lib.graph.data.reader import from_data
from course_lib.graph.data.writer import to_data

__all__ = ["from_data", "to_data"]
