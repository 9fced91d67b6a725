def predict_backend(call):
    match call:
        case {"mask": {"dtype": kind}} if kind not in ("bool", "float32", call["dtype"]):
            return "error"
        case {"mask": {"learned": True}} | {"mask": {"shape": [_, _, _]}} | {"query": [_, _, _]} | {"turned": True}:
            slow = True
        case {"query": [*_, a], "value": [*_, b], "dropout": p}:
            slow = a != b or p > 0
    wanted = [] if slow else ["flash"]
    wanted += [] if call["mask"] and call["causal"] else ["math"]
    return next((name for name in wanted if name in call["allowed"]), "error")
