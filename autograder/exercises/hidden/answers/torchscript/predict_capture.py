def predict(question: dict) -> str:
    """Tell "agrees", "differs" or "fails"; about 15 lines, no torch needed."""
    program, example, later = question["program"], question["example"], question["later"]
    if question["capture"] == "script":
        return "fails" if program in ("through_numpy", "with_options") else "agrees"
    same_rows, same_sum = example["rows"] == later["rows"], example["sum"] == later["sum"]
    if program == "add_up_rows" and not same_rows:
        return "differs" if later["rows"] > example["rows"] else "fails"
    if program == "through_numpy" and not same_rows:
        return "fails"
    right = {
        "branch_on_value": (example["sum"] > 0) == (later["sum"] > 0),
        "branch_on_rows": (example["rows"] > 4) == (later["rows"] > 4),
        "divide_by_len": same_rows,
        "scale_by_item": same_sum,
        "through_numpy": same_sum,
    }
    return "agrees" if right.get(program, True) else "differs"
