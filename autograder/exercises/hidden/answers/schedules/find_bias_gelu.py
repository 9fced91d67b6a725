def find_bias_gelu(part: Schedule) -> Matches:
    """Return all places of exact GELU after a bias; a good answer has about 8 lines."""
    found = list(part.find(lambda x, bias: F.gelu(x + bias)))
    for match in part.find(lambda x, bias: call_module(".*gelu.*", x + bias)):
        module = part.mod.get_submodule(match.nodes[-1].target)
        if not type(module).__module__.startswith("torch.nn"):
            found.append(match)
    return Matches(tuple(found))
