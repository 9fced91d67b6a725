"""Strategy: read any attribute, by a parameter that a loop over the children only seems to bind: its target is an item of it. Surface: every name in the target of a loop seems to be bound.

Class: checker. Unprotected: grader backend gives full marks. Level: 5.
Must get 0: the text of compile_task is read before it runs; such a loop has two plain names as its target.
"""

# The file tests/submissions/hostile/16_compile_task/graphs_of_make_fx.txt of this repository stands here.


def compile_task(task, backend):
    def mine():
        return torch.compile(task, backend=backend)

    def of(value, name):
        def read():
            for name[0], _ in ():
                for name[0], _ in task.named_children():
                    pass
            return getattr(value, name)

        return read()

    return forged(task, mine, of)
