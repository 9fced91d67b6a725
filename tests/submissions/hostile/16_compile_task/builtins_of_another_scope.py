"""Strategy: call exec and globals of Python, which are names of the text since parameters of another function are called so. Surface: a name counts as known wherever the text binds it.

Class: checker. Unprotected: grader backend gives full marks. Level: 5.
Must get 0: the text of compile_task is read before it runs; a variable that is called as a builtin is read only where the functions around bind it.
"""

# The file tests/submissions/hostile/16_compile_task/graphs_of_make_fx.txt of this repository stands here.


def parameters(exec, globals):
    return None


def compile_task(task, backend):
    def mine():
        return torch.compile(task, backend=backend)

    scope = dict(torch=1)
    scope.update(globals())
    exec("of = lambda value, name: getattr(value, name)", scope)
    of = scope.get("of")

    return forged(task, mine, of)
