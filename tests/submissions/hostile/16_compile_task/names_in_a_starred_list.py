"""Strategy: read any attribute: a starred list of object and name comes before the written name, which is the default then. Surface: the second argument that is written seems to be the name.

Class: checker. Unprotected: grader backend gives full marks. Level: 5.
Must get 0: the text of compile_task is read before it runs; calls of getattr, hasattr and setattr have no starred argument.
"""

# The file tests/submissions/hostile/16_compile_task/graphs_of_make_fx.txt of this repository stands here.


def compile_task(task, backend):
    def mine():
        return torch.compile(task, backend=backend)

    def of(value, name):
        return getattr(*[value, name], "forward")

    return forged(task, mine, of)
