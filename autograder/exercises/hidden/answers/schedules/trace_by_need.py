def trace_feed_forwards(schedule: Schedule) -> Schedule:
    """Make a flat graph of every FeedForward; a good answer has about 7 lines."""
    for path, module in list(schedule.mod.named_modules()):
        if type(module).__name__ == "FeedForward":
            for name, inner in list(module.named_modules()):
                if isinstance(inner, nn.Linear):
                    schedule[path][name].decompose()
            schedule[path].trace()
    return schedule
