def input_that_shows(question: dict) -> dict:
    """An input on which the operator does not keep its promise; about 10 lines."""
    n = question["number"]
    given = {"shape": [n, n], "transposed": False, "magnitude": 1.0, "times": 1}
    if question["operator"] == "shape":
        given["shape"] = [2, n + 1]
    if question["operator"] == "strides":
        given["transposed"] = True
    if question["operator"] == "write":
        given["magnitude"] = 20.0 * n
    if question["operator"] == "argument":
        given["times"] = 2
    return given
