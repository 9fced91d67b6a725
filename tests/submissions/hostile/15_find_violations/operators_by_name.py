"""Strategy: take the operator's name for the violation. Surface: programs in which each violation has an operator of its own.

Class: checker. Unprotected: grader violated gives full marks. Level: 5.
Must get 0: each program also has lines with the same operators that violate nothing.
"""

CATEGORIES = {
    "_local_scalar_dense.default": "host read",
    "bernoulli_.float": "random state",
    "gelu.default": "two shapes",
    "mm.default": "rebound input",
    "mul_.Tensor": "stale number",
    "sub.Tensor": "rebound input",
    "zeros.default": "first call only",
}


def find_violations(program):
    found = set()
    for launch in program["first"]:
        name = launch["operator"].removeprefix("aten.")
        if name in CATEGORIES:
            found.add((launch["line"], CATEGORIES[name]))
        if any(isinstance(number, float) for number in launch["numbers"]) and name == "mul.Tensor":
            found.add((launch["line"], "stale number"))
    return [list(row) for row in found]
