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


# %% a table in a text
TEXT = """
cost names clone as the fourth of five launches | a view in its place would save one launch | 29 | 29 | dropped
the trace of fx has a sum before each norm | one operator for the end saves three launches | 29 | 26 | kept
the same end stands behind the attention, too | the rewrite saves as many launches there | 26 | 23 | kept
"""


def work_log(question):
    entries = []
    for number, line in enumerate(TEXT.strip().splitlines()):
        evidence, hypothesis, before, after, verdict = (part.strip() for part in line.split("|"))
        entry = {"evidence": evidence, "hypothesis": hypothesis, "verdict": verdict}
        entry["measurement"] = {"counter": "kernels", "unit": "launches", "before": int(before), "after": int(after)}
        entry["change"] = f"Rewrote the graph in step {number} and checked it."
        entries.append(entry)
    threats = [
        {"threat": "We counted a sequence of 16 tokens only.", "answer": "We counted 48 tokens as well afterwards."},
        {"threat": "The seeds of dropout were the same ones.", "answer": "Three other seeds gave equal losses too."},
    ]
    return {"entries": entries, "threats": threats}


# %% data classes
from dataclasses import asdict, dataclass, field


@dataclass
class Measurement:
    counter: str
    before: float
    after: float
    unit: str = "bytes"


@dataclass
class Entry:
    evidence: str
    hypothesis: str
    change: str
    measurement: Measurement
    verdict: str = "kept"


@dataclass
class Threat:
    threat: str
    answer: str


@dataclass
class Log:
    entries: list = field(default_factory=list)
    threats: list = field(default_factory=list)


def work_log(question):
    log = Log()
    log.entries.append(
        Entry(
            "The profile shows five writes between the products.",
            "Two writes can go, 82 thousand bytes in all.",
            "Fused the end of the first block.",
            Measurement("bytes_moved", 831_888, 790_568),
        )
    )
    log.entries.append(
        Entry(
            "GELU reads what the product has written.",
            "Fused with its bias it reads that once.",
            "Put bias_gelu into the feed-forward part.",
            Measurement("bytes_moved", 790_568, 782_632),
        )
    )
    log.entries.append(
        Entry(
            "Masks of dropout take a byte for each element.",
            "Recomputed from the seed they take nothing.",
            "Replaced dropout by one that recomputes its mask.",
            Measurement("bytes_moved", 782_632, 801_000),
            "dropped",
        )
    )
    log.threats.append(Threat("Bytes are counted, not measured by hardware.", "We say bytes counted in every line."))
    log.threats.append(
        Threat("Our layer is smaller than BERT's own.", "We repeated it at width 128, with equal signs.")
    )
    return asdict(log)


# %% times as well as counts
def work_log(question):
    timed = {"counter": "step_time", "unit": "us"}
    counted = {"counter": "launches", "unit": "launches"}
    first = {
        "evidence": "The step has 68 launches, 29 of them forward.",
        "hypothesis": "Five launches fewer need less time on this machine.",
        "change": "Fused the end behind the attention by hand.",
        "measurement": {**counted, "before": 68, "after": 63},
        "verdict": "kept",
    }
    second = {
        "evidence": "The median of 50 steps was 2,150 µs.",
        "hypothesis": "One thread is faster at this small size.",
        "change": "Set the number of threads to one.",
        "measurement": {**timed, "before": 2150.0, "after": 2240.5},
        "verdict": "dropped",
    }
    third = {
        "evidence": "With 63 launches the median fell as well.",
        "hypothesis": "The fusion explains it, not the noise of timing.",
        "change": "Kept the fusion and timed it in pairs.",
        "measurement": {**timed, "before": 2150.0, "after": 2015.0},
        "verdict": "kept",
    }
    why = ("Other programs ran beside ours while we timed.", "The first steps are slower than later ones.")
    how = ("We took the median of pairs in random order.", "We left out ten steps as a warm-up.")
    return {
        "entries": [first, second, third],
        "threats": [{"threat": t, "answer": a} for t, a in zip(why, how, strict=True)],
    }


# %% a generator of entries
def entries():
    before = 78_336
    ideas = (
        ("keep no mask of the residual dropout", 78_336, False),
        ("fuse the end of the feed-forward part", 73_992, True),
        ("fuse the end of the attention part", 69_648, True),
        ("save the softmax in half precision instead", 69_648, False),
    )
    for idea, after, good in ideas:
        yield {
            "evidence": f"Before we tried to {idea}, saved_for_backward listed it.",
            "hypothesis": f"To {idea} should lower the saved bytes.",
            "change": f"A pass of twelve lines to {idea}.",
            "measurement": {"counter": "saved_bytes", "unit": "bytes", "before": before, "after": after},
            "verdict": ("dropped", "kept")[good],
        }
        before = after if good else before


def work_log(question):
    pairs = {
        "The library may save other tensors tomorrow.": "The record names the version of PyTorch.",
        "A reader may have another number of cores.": "Saved bytes do not depend on cores.",
        "We may have stopped at a local minimum.": "Three routes ended at the same counters.",
    }
    return {"entries": list(entries()), "threats": [{"threat": t, "answer": a} for t, a in pairs.items()]}
