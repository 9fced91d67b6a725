"""Strategy: read any attribute, by the name that a method named_children of a class gives, which `type` of a class makes. Surface: the result of type is called.

Class: checker. Unprotected: grader backend gives full marks. Level: 5.
Must get 0: the text of compile_task is read before it runs; what type returns is compared, or asked for its name or module.
"""

# The file tests/submissions/hostile/16_compile_task/graphs_of_make_fx.txt of this repository stands here.


def compile_task(task, backend):
    def mine():
        return torch.compile(task, backend=backend)

    meta = type(type(task))

    def of(value, wanted):
        named = meta("Named", (), {"named_children": lambda self: [(wanted, 0)]})
        for name, _ in named().named_children():
            return getattr(value, name)

    return forged(task, mine, of)
