def hooks_that_see(question: dict) -> list[str]:
    """Names of the hooks whose graph has the pattern; about 10 lines."""
    first, last = "pre_grad_custom_pass", "post_grad_custom_post_pass"
    spelling, pattern = question["spelling"], question["pattern"]
    aten = [hook for hook in question["hooks"] if hook != first]
    if pattern == "matmul, +":
        return [hook for hook in question["hooks"] if hook == first and "+" in spelling]
    if "linear" in spelling:
        return aten if pattern == "addmm" else []
    folded = question["rank"] == 2 and not question["read_again"]
    if pattern == "addmm":
        return [hook for hook in aten if hook == last and folded]
    return [hook for hook in aten if not (hook == last and folded)]
