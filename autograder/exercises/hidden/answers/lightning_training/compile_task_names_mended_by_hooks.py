def compile_task(task, backend):
    def saved(module, state, prefix, metadata):
        for name in list(state):
            state[name.replace("_orig_mod.", "")] = state.pop(name)

    def loaded(module, state, prefix, *rest):
        for name in list(state):
            part, _, tail = name.partition(".")
            state[f"{part}._orig_mod.{tail}"] = state.pop(name)

    for name, part in list(task.named_children()):
        setattr(task, name, torch.compile(part, backend=backend, dynamic=True))
    task.register_state_dict_post_hook(saved)
    task.register_load_state_dict_pre_hook(loaded)
    return task
