def predict_backend(call):
    mask = call["mask"] or {"shape": [1, 1], "dtype": "bool", "learned": False}
    invalid = mask["dtype"] not in {"bool", "float32", call["dtype"]}
    refusals = []
    if call["dropout"]:
        refusals.append("dropout")
    if len(call["key"]) != 4:
        refusals.append("dimensions")
    if call["key"][-1] != call["value"][-1]:
        refusals.append("width")
    if call["turned"]:
        refusals.append("layout")
    if mask["learned"] or len(mask["shape"]) == 3:
        refusals.append("mask")
    able = [
        kernel for kernel in ("flash", "math") if kernel in call["allowed"] and not (refusals and kernel == "flash")
    ]
    if able[:1] == ["math"] and call["mask"] and call["causal"]:
        invalid = True
    return "error" if invalid or not able else able[0]
