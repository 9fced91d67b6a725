def predict_backend(call):
    m = call["mask"]
    flash = len(call["query"]) == 4 and call["query"][3:] == call["value"][3:]
    flash &= not call["turned"] and call["dropout"] < 1e-9
    if m:
        flash &= not m["learned"] and len(m["shape"]) != 3
    left = [k for k in call["allowed"] if (flash if k == "flash" else not (m and call["causal"]))]
    result = sorted(left)[0] if left else "error"
    if m and m["dtype"] not in ("bool", "float32", call["dtype"]):
        result = "error"
    return result
