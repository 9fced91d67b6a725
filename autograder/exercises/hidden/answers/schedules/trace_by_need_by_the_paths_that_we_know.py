def trace_feed_forwards(schedule):
    for number in range(len(schedule.mod.layers)):
        part = schedule[f"layers.{number}.feed_forward"]
        part["dense"].decompose()
        part["projection.dense"].decompose()
        part.trace()
    return schedule
