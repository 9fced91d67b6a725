"""Strategy: capture a copy of the function with its first numbers in each call, and replay that once, beside a graph of copies that is always the same. Surface: calls that replay one capture in common.

Class: replay. Unprotected: grader renumbered gives full marks. Level: 5.
Must get 0: launches of a capture that the call before did not replay are as good as eager ones.
"""

from course_lib.launches import Graph, warm_up


# The file tests/submissions/hostile/15_replay_by_shape/frozen_function.txt of this repository stands here.


def replayed(function):
    known = {}

    def call(*inputs):
        shapes = tuple(each.shape for each in inputs)
        if shapes not in known:
            mine, other = frozen(function), torch.zeros(inputs[0].shape)
            state = torch.get_rng_state()
            with warm_up():
                mine(*inputs)
                other.copy_(other.clone())
            torch.set_rng_state(state)
            with (decoy := Graph()):
                for _ in range(9):
                    other.copy_(other.clone())
            known[shapes] = mine, decoy
        mine, decoy = known[shapes]
        with (graph := Graph()):
            result = mine(*inputs)
        decoy.replay()
        graph.replay()
        return result

    return call
