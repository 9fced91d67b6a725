def raises(call):
    if call["mask"] is None:
        return False
    return not (call["mask"]["dtype"] in ("bool", "float32") or call["mask"]["dtype"] == call["dtype"])


def fused(call):
    shapes = [call[name] for name in ("query", "key", "value")]
    same = all(len(shape) == 4 and shape[-1] == shapes[0][-1] for shape in shapes)
    mask = call["mask"]
    return (
        same
        and call["dropout"] == 0.0
        and not call["turned"]
        and (mask is None or (len(mask["shape"]) in (2, 4) and mask["learned"] is False))
    )


def predict_backend(call):
    if raises(call):
        return "error"
    for name, able in (("flash", fused(call)), ("math", not (call["mask"] and call["causal"]))):
        if able and name in call["allowed"]:
            return name
    return "error"
