"""Strategy: read any attribute, by a parameter of a function around, while a comprehension gives its own variable of this name the names of children. Surface: names of children are found by the text of a function, not by its scopes.

Class: checker. Unprotected: grader backend gives full marks. Level: 5.
Must get 0: the text of compile_task is read before it runs; a name counts as that of a child only if nothing else in the functions around binds it.
"""

# The file tests/submissions/hostile/16_compile_task/graphs_of_make_fx.txt of this repository stands here.


def compile_task(task, backend):
    def mine():
        return torch.compile(task, backend=backend)

    def of(value, name):
        def read():
            unused = [0 for name, _ in task.named_children()]
            return getattr(value, name)

        return read()

    return forged(task, mine, of)
