def separate_biases(schedule: Schedule, name: str) -> Schedule:
    """Decompose every linear layer of that name; a good answer has about 4 lines."""
    for path, module in list(schedule.mod.named_modules()):
        if isinstance(module, nn.Linear) and path.split(".")[-1] == name:
            schedule[path].decompose()
    return schedule
