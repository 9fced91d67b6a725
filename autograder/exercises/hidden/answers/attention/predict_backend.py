def predict_backend(call: dict) -> str:
    """Return "flash", "math" or "error"; about 12 lines."""
    mask = call["mask"]
    if mask and mask["dtype"] not in ("bool", "float32", call["dtype"]):
        return "error"
    fits = [
        not call["dropout"],
        len(call["query"]) == 4,
        call["value"][-1] == call["query"][-1],
        not call["turned"],
        not mask or not mask["learned"],
        not mask or len(mask["shape"]) != 3,
    ]
    if all(fits) and "flash" in call["allowed"]:
        return "flash"
    return "math" if "math" in call["allowed"] and not (mask and call["causal"]) else "error"
