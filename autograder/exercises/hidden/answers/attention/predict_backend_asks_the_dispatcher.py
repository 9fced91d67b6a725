def predict_backend(call):
    dtype = getattr(torch, call["dtype"])
    query, key, value = (torch.zeros(call[name], dtype=dtype) for name in ("query", "key", "value"))
    if call["turned"]:
        key = key.mT.contiguous().mT
    mask = call["mask"] and torch.ones(call["mask"]["shape"], dtype=getattr(torch, call["mask"]["dtype"]))
    if mask is not None and call["mask"]["learned"]:
        mask.requires_grad_()
    choice = torch._fused_sdp_choice(query, key, value, mask, call["dropout"], call["causal"])
    return {0: "math", 1: "flash"}.get(choice, "error")
