def trace_feed_forwards(schedule):
    for path in [p for p, m in schedule.mod.named_modules() if type(m).__name__ == "FeedForward"]:
        schedule[path]["dense"].decompose()
        schedule[path].trace(flatten=False)
    return schedule
