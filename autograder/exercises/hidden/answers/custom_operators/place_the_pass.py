def hooks_that_see(question: dict) -> list[str]:
    """Names of the hooks whose graph has the pattern; about 8 lines."""
    before_autograd, *aten = question["hooks"]
    spelling, pattern = question["spelling"], question["pattern"]
    if pattern == "matmul, +":
        return [before_autograd] if "+" in spelling else []
    if "linear" in spelling:
        return aten if pattern == "addmm" else []
    folded = question["rank"] == 2 and not question["read_again"]
    if pattern == "addmm":
        return aten[-1:] if folded else []
    return aten[:-1] if folded else aten
