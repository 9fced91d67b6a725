def input_that_shows(question: dict) -> dict:
    """An input on which this operator breaks its promise and the other four keep theirs; about 12 lines."""
    asked, numbers = question["operator"], question["numbers"]
    rows, columns = numbers["alias"] + 1, numbers["shape"]
    if asked == "alias":
        rows = numbers["alias"]
    if asked == "shape":
        columns += 1
    transposed = asked == "strides"
    return {
        "shape": [columns, rows] if transposed else [rows, columns],
        "transposed": transposed,
        "magnitude": 10.0 * numbers["write"] if asked == "write" else 0.01,
        "times": 2 if asked == "argument" else 1,
    }
