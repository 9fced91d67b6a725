def compile_task(task, backend):
    def compiled(forward):
        def call(*args, **options):
            return forward(*args, **options)

        return torch.compile(call, backend=backend, dynamic=True)

    for _, part in task.named_children():
        part.forward = compiled(part.forward)
    return task
