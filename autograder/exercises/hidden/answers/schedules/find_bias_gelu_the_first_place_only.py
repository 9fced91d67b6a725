def find_bias_gelu(part):
    return Matches(find_all(part).found[:1])


def find_all(part):
    exact = part.find(lambda x, bias: F.gelu(x + bias))
    return exact if len(exact) else part.find(lambda x, bias: call_module(".*gelu.*", x + bias))
