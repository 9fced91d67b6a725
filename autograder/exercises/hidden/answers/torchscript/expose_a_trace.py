def expose(question: dict) -> tuple:
    """Return (example, later); about 6 lines."""
    limit = question["limit"]
    if question["program"] == "average_even":
        return torch.ones(limit, 3), torch.ones(limit + 1, 3)
    return torch.full((2, 3), limit / 100), torch.full((2, 3), limit * 3.0)
