def predict_backend(call):
    kind = "flash"
    if call["dropout"] > 0:
        kind = "math"
    if len(call["query"]) < 4 or len(call["value"]) < 4:
        kind = "math"
    if call["query"][-1] != call["value"][-1]:
        kind = "math"
    if call["turned"]:
        kind = "math"
    if call["mask"] is not None:
        if call["mask"]["dtype"] not in ("bool", "float32") and call["mask"]["dtype"] != call["dtype"]:
            return "error"
        if call["mask"]["learned"]:
            kind = "math"
        if len(call["mask"]["shape"]) not in (2, 4):
            kind = "math"
    if kind == "flash" and "flash" in call["allowed"]:
        return "flash"
    if "math" not in call["allowed"] or (call["causal"] and call["mask"]):
        return "error"
    return "math"
