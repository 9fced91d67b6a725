def separate_biases(schedule, name):
    linears = [p for p, m in schedule.mod.named_modules() if isinstance(m, nn.Linear)]
    count = sum(p.split(".")[-1] == name for p in linears)
    for path in linears[-count:]:
        schedule[path].decompose()
    return schedule
