def predict_backend(call):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.profiler import profile

    dtype = getattr(torch, call["dtype"])
    query, key, value = (torch.zeros(call[name], dtype=dtype) for name in ("query", "key", "value"))
    if call["turned"]:
        key = key.mT.contiguous().mT
    mask = call["mask"] and torch.ones(call["mask"]["shape"], dtype=getattr(torch, call["mask"]["dtype"]))
    if mask is not None and call["mask"]["learned"]:
        mask.requires_grad_()
    kernels = {"flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}
    with sdpa_kernel([kernels[name] for name in call["allowed"]]), profile() as seen:
        try:
            torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, call["dropout"], call["causal"])
        except RuntimeError:
            return "error"
    return "flash" if any("flash" in event.name for event in seen.events()) else "math"
