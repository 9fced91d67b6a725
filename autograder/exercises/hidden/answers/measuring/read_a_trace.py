def read_trace(trace: dict) -> dict:
    """Find the top kernel, the longest gap and the launch-bound ranges; a good answer has about 20 lines."""
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    kernels = sorted((e["ts"], e["ts"] + e["dur"], e["name"]) for e in complete if e["cat"] == "kernel")
    totals, gap, reached = {}, 0, kernels[0][0]
    for start, end, name in kernels:
        totals[name] = totals.get(name, 0) + end - start
        gap, reached = max(gap, start - reached), max(reached, end)

    def covered_us(first, last):
        covered = 0
        for start, end, _ in kernels:
            covered += max(0, min(end, last) - max(start, first))
            first = max(first, min(end, last))
        return covered

    ranges = [(e["name"], e["ts"], e["ts"] + e["dur"]) for e in complete if e["cat"] == "gpu_user_annotation"]
    waiting = [name for name, first, last in ranges if 2 * covered_us(first, last) < last - first]
    return {"top_kernel": max(totals, key=totals.get), "longest_gap_us": gap, "launch_bound": sorted(waiting)}
