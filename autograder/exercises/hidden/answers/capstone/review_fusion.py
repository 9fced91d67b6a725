def review(question: dict) -> tuple:
    """Return three programs, each with its inputs; each shows another defect."""
    width = question["width"]

    def keyword(x, y, weight, bias):
        return F.layer_norm(torch.add(x, y, alpha=3), (width,), weight, bias)

    def reader(x, y, weight, bias):
        total = x + y
        return F.layer_norm(total, (width,), weight, bias) + total

    def write(x, y, weight, bias):
        total = x + y
        x.neg_()
        return F.layer_norm(total, (width,), weight, bias)

    inputs = torch.randn(3, width), torch.randn(3, width), torch.ones(width), torch.zeros(width)
    return (keyword, *inputs), (reader, *inputs), (write, *inputs)
