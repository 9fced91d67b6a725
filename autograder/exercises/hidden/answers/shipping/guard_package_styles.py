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


# %% sizes asked whether they lie in the bounds
def guarded(package, program):
    fakes = [node.meta["val"] for node in program.graph.nodes if node.name in program.graph_signature.user_inputs]

    def check(name, tensor, fake, values):
        if (tensor.dtype, tensor.ndim, tensor.is_contiguous()) != (fake.dtype, fake.ndim, True):
            raise ValueError(f"{name}: dtype, dimensions or strides")
        for size, symbol in zip(tensor.shape, fake.shape, strict=True):
            if isinstance(symbol, torch.SymInt):
                bounds = program.range_constraints[symbol.node.expr]
                if values.setdefault(str(symbol), size) != size or size not in bounds:
                    raise ValueError(f"{name}: {symbol} can't be {size}")
            elif symbol != size:
                raise ValueError(f"{name}: {size} in place of {symbol}")

    def run(*inputs):
        values = {}
        if len(fakes) != len(inputs):
            raise ValueError("another number of inputs")
        for name, tensor, fake in zip(program.graph_signature.user_inputs, inputs, fakes, strict=True):
            check(name, tensor, fake, values)
        return package(*inputs)

    return run


# %% strides by their numbers
def guarded(package, program):
    names = program.graph_signature.user_inputs
    by_name = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    limits = {str(symbol): each for symbol, each in program.range_constraints.items()}

    def dense(tensor):
        step = 1
        for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
            if stride != step and size != 1:
                return False
            step *= size
        return True

    def run(*inputs):
        if len(inputs) != len(names):
            raise ValueError("inputs")
        bound = {}
        for name, tensor in zip(names, inputs, strict=True):
            fake = by_name[name]
            try:
                assert tensor.dtype == fake.dtype
                assert len(tensor.shape) == len(fake.shape)
                assert dense(tensor)
                for size, text in zip(tensor.shape, map(str, fake.shape), strict=True):
                    if text in limits:
                        assert limits[text].lower <= size <= limits[text].upper
                    else:
                        assert size == int(text)
                    assert bound.setdefault(text, size) == size
            except AssertionError:
                raise ValueError(name) from None
        return package(*inputs)

    return run


# %% a decorated function
def guarded(package, program):
    import functools

    symbols = {str(symbol): bounds for symbol, bounds in program.range_constraints.items()}
    promised = []
    for spec in program.graph_signature.input_specs:
        if spec.kind is torch.export.graph_signature.InputKind.USER_INPUT:
            (node,) = (each for each in program.graph.nodes if each.name == spec.arg.name)
            promised.append((spec.arg.name, node.meta["val"]))

    def first_wrong(inputs):
        where = {}
        for (name, fake), tensor in zip(promised, inputs, strict=True):
            if tensor.dtype != fake.dtype or tensor.dim() != fake.dim() or not tensor.is_contiguous():
                return name
            for at in range(tensor.dim()):
                wanted, size = str(fake.size(at)), tensor.size(at)
                if wanted not in symbols:
                    if wanted != str(size):
                        return name
                elif (
                    where.setdefault(wanted, size) != size
                    or size < symbols[wanted].lower
                    or symbols[wanted].upper < size
                ):
                    return name
        return None

    @functools.wraps(package)
    def run(*inputs):
        if len(inputs) != len(promised):
            raise ValueError(f"{len(inputs)} inputs")
        if wrong := first_wrong(inputs):
            raise ValueError(f"The input {wrong} is not what was promised.")
        return package(*inputs)

    return run


# %% checks as a list of functions
def guarded(package, program):
    names = list(program.graph_signature.user_inputs)
    fakes = {node.name: node.meta["val"] for node in program.graph.find_nodes(op="placeholder")}
    checks = {name: [] for name in names}
    for name in names:
        fake = fakes[name]
        checks[name].append(lambda t, seen, fake=fake: t.dtype == fake.dtype and t.dim() == fake.dim())
        checks[name].append(lambda t, seen: t.is_contiguous())
        for at, size in enumerate(fake.shape):
            if isinstance(size, int):
                checks[name].append(lambda t, seen, at=at, size=size: t.shape[at] == size)
                continue
            bounds = program.range_constraints[size.node.expr]
            checks[name].append(lambda t, seen, at=at, b=bounds: b.lower <= t.shape[at] <= b.upper)
            key = str(size)
            checks[name].append(lambda t, seen, at=at, k=key: seen.setdefault(k, t.shape[at]) == t.shape[at])

    def run(*inputs):
        if len(inputs) != len(names):
            raise ValueError(len(inputs))
        seen = {}
        for name, tensor in zip(names, inputs, strict=True):
            if not all(check(tensor, seen) for check in checks[name]):
                raise ValueError(name)
        return package(*inputs)

    return run
