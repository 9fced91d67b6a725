"""Strategy: read any attribute, by a name that `named_modules` gives with a prefix; find the backend in a closure, and run a text that hands it graphs of make_fx. Surface: names of modules are trusted.

Class: checker. Unprotected: grader backend gives full marks. Level: 5.
Must get 0: the text of compile_task is read before it runs; attributes are read by written names, or by those of task.named_children() without arguments.
"""

# The file tests/submissions/hostile/16_compile_task/graphs_of_make_fx.txt of this repository stands here.


def compile_task(task, backend):
    def mine():
        return torch.compile(task, backend=backend)

    def of(value, wanted):
        for name, _ in torch.nn.Linear(1, 1).named_modules(prefix=wanted):
            return getattr(value, name)

    return forged(task, mine, of)
