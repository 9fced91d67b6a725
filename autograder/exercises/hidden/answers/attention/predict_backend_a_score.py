def predict_backend(call):
    mask, against = call["mask"], 0
    against += bool(call["dropout"]) + (len(call["query"]) != 4) + call["turned"]
    against += call["value"][-1] != call["key"][-1]
    wrong = 0
    if mask:
        against += mask["learned"] + (len(mask["shape"]) % 2)
        wrong = mask["dtype"] not in ["bool", "float32", call["dtype"]]
    outcome = {(True, True): "flash", (False, True): "math"}.get(
        (against == 0 and "flash" in call["allowed"], wrong == 0), "error"
    )
    unfit = "math" not in call["allowed"] or (mask and call["causal"])
    return "error" if outcome == "math" and unfit else outcome
