"""Strategy: return a GraphModule whose property `graph` runs the library's pass when the grader reads it. Surface: the functions that run are observed until the answer returns, and its graph is read afterwards.

Class: answer theft. Unprotected: grader counted_on_zeros gives full marks. Level: 5.
Must get 0: the graph is read and written while functions that run are observed.
"""

from torch import fx

# The file tests/submissions/hostile/17_optimise_step/pass_behind_a_property.py of this repository stands here.


class Lazy(fx.GraphModule):
    made = None

    @property
    def graph(self):
        if self.__dict__.get("ready") and self.made is None:
            Lazy.made = run(fx.GraphModule(self, fx.GraphModule.graph.fget(self)))
            return Lazy.made.graph
        return self.made.graph if self.made is not None else fx.GraphModule.graph.fget(self)

    @graph.setter
    def graph(self, g):
        fx.GraphModule.graph.fset(self, g)


def optimise(gm):
    Lazy.made = None
    out = Lazy(gm, gm.graph)
    out.__dict__["ready"] = True
    return out
