"""Strategy: measure gaps from the end of the kernel that began last, and call a range launch-bound below two thirds. Surface: traces in which every kernel ends after all earlier ones, and ranges that are nearly full or nearly empty.

Class: checker. Unprotected: grader exemplary gives full marks. Level: 5.
Must get at most 4.6: the traces are drawn until each known wrong formula gives another answer, and ranges are a little more or less than half full.
"""

def read_trace(trace):
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    kernels = sorted((e["ts"], e["ts"] + e["dur"], e["name"]) for e in complete if e["cat"] == "kernel")
    totals, gap, last_end = {}, 0, kernels[0][0]
    for start, end, name in kernels:
        totals[name] = totals.get(name, 0) + end - start
        gap, last_end = max(gap, start - last_end), end

    def covered(first, last):
        total = 0
        for start, end, _ in kernels:
            total += max(0, min(end, last) - max(start, first))
            first = max(first, min(end, last))
        return total

    ranges = [(e["name"], e["ts"], e["ts"] + e["dur"]) for e in complete if e["cat"] == "gpu_user_annotation"]
    waiting = [name for name, first, last in ranges if 1.5 * covered(first, last) < last - first]
    return {"top_kernel": max(totals, key=totals.get), "longest_gap_us": gap, "launch_bound": sorted(waiting)}
