def which_limit(seen: dict) -> str:
    """Name the limit; about 8 lines."""
    if seen["error"]:
        return "outside the language" if "upported" in seen["error"] else "unknown type"
    if not seen["same_on_others"]:
        return "frozen branch" if "boolean" in str(seen["warnings"]) else "frozen number"
    if not seen["same_in_evaluation"]:
        return "frozen mode"
    return "lost effect" if seen["calls_seen"] == 0 else "none"
