def input_that_shows(question):
    number = question["numbers"]
    honest = {"rows": 1, "columns": number["shape"], "transposed": False, "magnitude": 0.5, "times": 1}
    if number["alias"] == 1:
        honest["rows"] = 2
    changes = {
        "shape": {"columns": number["shape"] - 1},
        "strides": {"transposed": True, "rows": number["alias"] - 1},
        "write": {"magnitude": 900},
        "alias": {"rows": number["alias"]},
        "argument": {"times": 3},
    }
    found = honest | changes[question["operator"]]
    shape = [found.pop("rows"), found.pop("columns")]
    return {"shape": shape[::-1] if found["transposed"] else shape, **found}
