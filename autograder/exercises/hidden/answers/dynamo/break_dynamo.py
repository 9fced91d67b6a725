def broken() -> dict:
    """Six functions by name: for each program an input that shows the mistake, and the repaired program."""
    return {
        "unrolled_input": lambda: torch.ones(4, 4),
        "unrolled": lambda x: x.tanh().sum(0),
        "softened_input": lambda: torch.full((1, 4), 200.0),
        "softened": lambda x: F.softplus(x),
        "chosen_input": lambda: -2 * torch.ones(3, 4),
        "chosen": lambda x: torch.where(x.sum() > 0, x * 2, x - 1),
    }
