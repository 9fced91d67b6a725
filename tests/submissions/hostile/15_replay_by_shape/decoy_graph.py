"""Strategy: capture and replay a graph of one copy, and compute the result eagerly beside it. Surface: the simulator's own record.

Class: replay. Unprotected: grader counted_replays gives full marks. Level: 5.
Must get 0: a capture comes as data; one that is replayed must hold the launches of the function, and few others run beside it.
"""

from course_lib.launches import Graph, warm_up


def replayed(function):
    known = {}

    def call(*inputs):
        shapes = tuple(each.shape for each in inputs)
        if shapes not in known:
            static = inputs[0].clone()
            with warm_up():
                static.clone()
            known[shapes] = Graph()
            with known[shapes]:
                static.clone()
        known[shapes].replay()
        return function(*inputs)

    return call
