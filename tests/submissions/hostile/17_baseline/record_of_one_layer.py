"""Strategy: return the record of the notebook's layer, written down once, whatever is asked. Surface: a layer that everybody has seen.

Class: checker. Unprotected: grader exemplary gives full marks. Level: 5.
Must get at most 3.7: each check asks about layers that it draws, and the launches depend on dropout and the recompiles on the batches.
"""

FACTS = {"python": "3.11.2", "torch": "2.13.0", "processor": "a CPU", "system": "Linux", "cores": 2, "threads": 1}


def baseline(question):
    counters = {"C1": 1, "C2": 1, "C3": 28, "C4": 6300160 / 924160, "C5": 1509376}
    return {"environment": FACTS, "counters": counters}
