"""Strategy: keep a copy of the function with the numbers of its first call; compute eagerly, and copy each result into the memory that the first call left. Surface: the launches of such a call are those by which the simulator replays.

Class: replay. Unprotected: grader renumbered gives full marks. Level: 5.
Must get 0: the launches of a call are those of a capture that came as data, and few beside it; copies make no other launch a replay.
"""

# The file tests/submissions/hostile/15_replay_by_shape/pool_of_the_first_call.txt of this repository stands here.


# The file tests/submissions/hostile/15_replay_by_shape/frozen_function.txt of this repository stands here.


def replayed(function):
    known = {}

    def call(*inputs):
        key = tuple(each.shape for each in inputs)
        new = key not in known
        if new:
            known[key] = frozen(function), [each.clone() for each in inputs], {}
        mine, static, kept = known[key]
        for old, each in zip(static, inputs, strict=True):
            old.copy_(each)
        with Pool(kept):
            result = mine(*static)
        return result.clone()

    return call
