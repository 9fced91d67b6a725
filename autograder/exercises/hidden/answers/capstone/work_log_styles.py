# %% another counter for each entry
def work_log(question):
    def entry(number, counter, unit, before, after, verdict):
        measurement = {"counter": counter, "unit": unit, "before": before, "after": after}
        texts = {
            "evidence": f"The report number {number} of the check shows {counter}.",
            "hypothesis": f"Change number {number} makes {counter} less than before.",
            "change": f"In attempt number {number} two calls became one.",
        }
        return {**texts, "measurement": measurement, "verdict": verdict}

    entries = [
        entry(1, "bytes_moved", "bytes", 831_888, 790_568, "kept"),
        entry(2, "saved_bytes", "bytes", 78_336, 78_336, "dropped"),
        entry(3, "step_time", "us", 2150.5, 2011.25, "kept"),
        entry(4, "bytes_moved", "bytes", 790_568, 749_248, "kept"),
        entry(5, "launches", "launches", 58, 61, "dropped"),
    ]
    threats = [
        {"threat": f"Run number {n} was on one machine only.", "answer": f"Run number {n} was made again there."}
        for n in range(4)
    ]
    return {"entries": entries, "threats": threats}


# %% tuples, and more than was asked for
LOG = (
    ("We saw four launches in a row.", "They could be one launch instead.", "We fused them by a pattern.", 68, 63, 1),
    (
        "The other block looks the same there.",
        "The pattern matches it as well.",
        "We ran it until nothing changed.",
        63,
        58,
        1,
    ),
    (
        "The masks are read twice in it.",
        "Saving them as bits is cheaper still.",
        "We packed them, and gradients broke.",
        58,
        57,
        0,
    ),
)


def work_log(question):
    rows = []
    for evidence, hypothesis, change, before, after, kept in LOG:
        row = {"evidence": evidence, "hypothesis": hypothesis, "change": change, "week": 2}
        row["measurement"] = {
            "counter": "launches",
            "unit": "launches",
            "before": before,
            "after": after,
            "repeated": 3,
        }
        row["verdict"] = "kept" if kept else "dropped"
        rows.append(row)
    threats = (
        {"threat": "Both of us read only one graph.", "answer": "The check tries three other models."},
        {"threat": "The order of the passes was ours.", "answer": "We tried the other order, with equal counters."},
    )
    return {"entries": tuple(rows), "threats": threats, "route": "an fx pass"}


# %% three dead ends before a success
def work_log(question):
    numbers = {"counter": "saved_bytes", "unit": "bytes", "before": 78336}
    tried = {
        "recompute the activation in the backward pass": 77000,
        "keep the masks of dropout as bits": 90000,
        "save nothing of the residual sums": 78336.0,
        "fuse the ends of both blocks": 69648,
    }
    entries = [
        {
            "evidence": f"saved_for_backward shows what '{what}' could save.",
            "hypothesis": f"If we {what}, less is kept for the backward pass.",
            "change": f"Wrote a pass to {what}, and ran the check.",
            "measurement": {**numbers, "after": after},
            "verdict": "dropped" if number < 3 else "kept",
        }
        for number, (what, after) in enumerate(tried.items())
    ]
    first = {"threat": "Saved bytes are counted without the inputs of the step.", "answer": "They are equal in both."}
    second = {"threat": "The sequence here is a short one.", "answer": "The check counts a longer one, too."}
    return {"threats": [first, second], "entries": entries}
