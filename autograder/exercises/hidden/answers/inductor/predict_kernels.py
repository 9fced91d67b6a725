def predict_kernels(steps: list[str]) -> dict:
    """Predict what Inductor makes of a program on one matrix; about 15 lines."""
    kernels, calls, waiting, product_last, turned = 0, 0, False, False, False
    for step in (s for s in steps if s != "unused"):
        if step in ("product", "sort", "break"):
            kernels += waiting
            calls += step != "break"
            waiting = turned = False
        elif step == "transpose":
            turned = not turned
            continue
        elif step != "keep":
            absorbed = product_last and not turned and step in ("bias", "residual")
            waiting = waiting or not absorbed
        product_last = step == "product"
    return {"kernels": kernels + waiting, "calls": calls}
