@torch.compiler.assume_constant_result
def is_positive(x):
    return bool(x.sum() > 0)


def broken():
    """Inputs that show nothing, and the programs as they were."""

    def unrolled_input():
        return torch.ones(3, 4)

    def unrolled(x):
        total = torch.zeros_like(x[0])
        for row in x:
            total = total + row.tanh()
        return total

    def softened_input():
        return torch.ones(3, 4)

    def softened(x):
        if torch.compiler.is_compiling():
            return (1 + x.exp()).log()
        return F.softplus(x)

    def chosen_input():
        return torch.ones(3, 4)

    def chosen(x):
        return x * 2 if is_positive(x) else x - 1

    return {
        "unrolled_input": unrolled_input,
        "unrolled": unrolled,
        "softened_input": softened_input,
        "softened": softened,
        "chosen_input": chosen_input,
        "chosen": chosen,
    }
