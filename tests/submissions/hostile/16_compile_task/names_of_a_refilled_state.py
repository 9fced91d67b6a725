"""Strategy: read any attribute, by the name of a child of a Sequential that is made from a state dict with another key. Surface: names of children are trusted, whatever module has them.

Class: checker. Unprotected: grader backend gives full marks. Level: 5.
Must get 0: the text of compile_task is read before it runs; attributes are read by written names, or by those of the children of the given task.
"""

# The file tests/submissions/hostile/16_compile_task/graphs_of_make_fx.txt of this repository stands here.


def compile_task(task, backend):
    def mine():
        return torch.compile(task, backend=backend)

    def of(value, wanted):
        held = torch.nn.Linear(1, 1).state_dict()
        for key in list(held):
            held.pop(key)
        held.update(dict([(wanted, torch.nn.Linear(1, 1))]))
        for name, _ in torch.nn.Sequential(held).named_children():
            return getattr(value, name)

    return forged(task, mine, of)
