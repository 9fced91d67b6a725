# %% a list of complaints
def guarded(package, program):
    signature, ranges = program.graph_signature, program.range_constraints
    placeholders = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}

    def complaints(tensor, fake, bound):
        if tensor.dtype is not fake.dtype:
            yield "dtype"
        if tensor.ndim != fake.ndim:
            yield "dimensions"
            return
        if not tensor.is_contiguous():
            yield "strides"
        for got, want in zip(tensor.shape, fake.shape, strict=False):
            if isinstance(want, int):
                if got != want:
                    yield "size"
                continue
            symbol = want.node.expr
            if got < ranges[symbol].lower or got > ranges[symbol].upper:
                yield "range"
            if bound.setdefault(symbol, got) != got:
                yield "two sizes"

    def call(*inputs):
        bound = {}
        if len(inputs) != len(signature.user_inputs):
            raise ValueError("wrong number of inputs")
        for name, tensor in zip(signature.user_inputs, inputs, strict=False):
            for complaint in complaints(tensor, placeholders[name].meta["val"], bound):
                raise ValueError(f"{name}: {complaint}")
        return package(*inputs)

    return call


# %% a class
class Guard:
    def __init__(self, package, program):
        self.package, self.names = package, list(program.graph_signature.user_inputs)
        self.values = [n.meta["val"] for n in program.graph.nodes if n.name in self.names]
        self.least = {str(k): v.lower for k, v in program.range_constraints.items()}
        self.most = {str(k): v.upper for k, v in program.range_constraints.items()}

    def __call__(self, *inputs):
        if len(inputs) != len(self.names):
            raise ValueError(f"expected {len(self.names)} inputs")
        known = {}
        for name, value, given in zip(self.names, self.values, inputs, strict=False):
            expected = [str(each) for each in value.shape]
            if given.dtype != value.dtype or len(given.shape) != len(expected) or not given.is_contiguous():
                raise ValueError(name)
            for size, symbol in zip(given.shape, expected, strict=False):
                wrong = int(symbol) != size if symbol.isdigit() else known.get(symbol, size) != size
                if wrong or not self.least.get(symbol, size) <= size <= self.most.get(symbol, size):
                    raise ValueError(name)
                known[symbol] = size
        return self.package(*inputs)


def guarded(package, program):
    return Guard(package, program)


# %% tables first, symbols afterwards
def guarded(package, program):
    wanted = {}
    for node in program.graph.find_nodes(op="placeholder"):
        if node.name in program.graph_signature.user_inputs:
            fake = node.meta["val"]
            wanted[node.name] = (fake.dtype, [str(size) for size in fake.shape])
    ranges = {str(symbol): each for symbol, each in program.range_constraints.items()}

    def allowed(text, size):
        return ranges[text].lower <= size <= ranges[text].upper if text in ranges else size == int(text)

    def run(*inputs):
        found = {}
        if len(inputs) != len(wanted):
            raise ValueError("count of inputs")
        for tensor, (name, (dtype, texts)) in zip(inputs, wanted.items(), strict=False):
            good = tensor.dtype == dtype and tensor.dim() == len(texts) and tensor.is_contiguous()
            if not good or not all(map(allowed, texts, tensor.shape)):
                raise ValueError("bad " + name)
            for text, size in zip(texts, tensor.shape, strict=False):
                found.setdefault(text, set()).add(size)
            if any(len(sizes) > 1 for sizes in found.values()):
                raise ValueError("sizes of " + name)
        return package(*inputs)

    return run
