# %% a grid of sizes, factors and forms
import onnxruntime


def tell_apart(module, limits, first, second):
    from itertools import product

    runs = {"first": onnxruntime.InferenceSession(first), "second": onnxruntime.InferenceSession(second)}
    promised = runs["first"].get_inputs()
    open_sizes = [name for name in limits if name not in [each.name for each in promised]]
    ends = [sorted({limits[n][0], limits[n][0] + 1, limits[n][1] // 2, limits[n][1]}) for n in open_sizes]

    def filled(each, sizes, factor, form):
        low, high = limits[each.name]
        shape = [sizes.get(s, s) for s in each.shape]
        if each.type == "tensor(bool)":
            return torch.rand(shape) < form / 4
        if each.type == "tensor(int64)":
            return torch.randint(low, high + 1, shape)
        x = torch.empty(shape).uniform_(low, high) * factor
        return torch.floor(x) + 0.5 if form == 2 and factor < 1 and factor > 1e-2 else x

    for _ in range(20):
        for *chosen, factor, form in product(*ends, (1, 0.1, 0.03, 1e-3, 1e-4), (1, 2, 3)):
            sizes = dict(zip(open_sizes, chosen, strict=True))
            inputs = tuple(filled(each, sizes, factor, form) for each in promised)
            truth = module(*inputs)
            feed = {each.name: x.numpy() for each, x in zip(promised, inputs, strict=True)}
            out = {name: torch.tensor(run.run(None, feed)[0]) for name, run in runs.items()}
            good = {name for name, y in out.items() if torch.allclose(y, truth, rtol=1e-4, atol=1e-4)}
            bad = {name for name, y in out.items() if not torch.allclose(y, truth, rtol=1e-2, atol=1e-2)}
            if len(good) == 1 and len(bad) == 1 and good != bad:
                return bad.pop(), inputs
    return None


# %% NumPy's generator
import onnxruntime


def tell_apart(module, limits, first, second):
    import numpy as np

    generator = np.random.default_rng(3)
    sessions = [onnxruntime.InferenceSession(m) for m in (first, second)]
    infos = sessions[0].get_inputs()
    while True:
        size = {name: int(generator.integers(low, high, endpoint=True)) for name, (low, high) in limits.items()}
        feed = {}
        for info in infos:
            low, high = limits[info.name]
            shape = [size.get(s, s) for s in info.shape]
            if info.type == "tensor(bool)":
                feed[info.name] = generator.random(shape) < generator.random()
            elif info.type == "tensor(int64)":
                feed[info.name] = generator.integers(low, high, shape, endpoint=True)
            else:
                magnitude = high / 10 ** generator.integers(0, 6)
                x = generator.uniform(-magnitude, magnitude, shape).astype(np.float32)
                feed[info.name] = np.rint(2 * x) / 2 if generator.random() < 0.3 else x
        inputs = tuple(torch.from_numpy(feed[info.name]) for info in infos)
        truth = module(*inputs).numpy()
        errors = [np.abs(s.run(None, feed)[0] - truth) / (1 + np.abs(truth)) for s in sessions]
        worst = [float(e.max()) for e in errors]
        if min(worst) < 5e-5 and max(worst) > 0.02:
            return "first" if worst[0] > worst[1] else "second", inputs


# %% a class
import onnxruntime


class Search:
    def __init__(self, module, limits, models):
        self.module, self.limits = module, limits
        self.sessions = {name: onnxruntime.InferenceSession(model) for name, model in models.items()}
        self.infos = self.sessions["first"].get_inputs()

    def tensor(self, info, sizes):
        low, high = self.limits[info.name]
        shape = tuple(sizes[s] if isinstance(s, str) else s for s in info.shape)
        if "bool" in info.type:
            return torch.bernoulli(torch.full(shape, float(torch.rand(())))).bool()
        if "int" in info.type:
            return torch.randint(low, high + 1, shape)
        scale = high * 10.0 ** -int(torch.randint(0, 6, ()))
        x = (torch.rand(shape) * 2 - 1) * scale
        return x if torch.randint(0, 2, ()) else (x * 2).round() / 2

    def tries(self):
        while True:
            sizes = {s: int(torch.randint(low, high + 1, ())) for s, (low, high) in self.limits.items()}
            yield tuple(self.tensor(info, sizes) for info in self.infos)

    def verdicts(self, inputs):
        truth = self.module(*inputs)
        for name, session in self.sessions.items():
            feed = {info.name: x.numpy() for info, x in zip(self.infos, inputs, strict=True)}
            y = torch.from_numpy(session.run([], feed)[0])
            right = torch.allclose(y, truth, rtol=1e-4, atol=1e-4)
            yield name, "right" if right else "near" if torch.allclose(y, truth, rtol=1e-2, atol=1e-2) else "wrong"


def tell_apart(module, limits, first, second):
    search = Search(module, limits, {"first": first, "second": second})
    for inputs in search.tries():
        found = dict(search.verdicts(inputs))
        if sorted(found.values()) == ["right", "wrong"]:
            return next(name for name, verdict in found.items() if verdict == "wrong"), inputs
    return None


# %% one input that mixes all magnitudes
import onnxruntime


def tell_apart(module, limits, first, second):
    sessions = [onnxruntime.InferenceSession(each) for each in (first, second)]
    infos = sessions[0].get_inputs()
    for attempt in range(2000):
        torch.manual_seed(attempt)
        sizes = {k: int(torch.randint(v[0], v[1] + 1, (1,))) for k, v in limits.items()}
        inputs = []
        for info in infos:
            shape = [sizes.get(d, d) for d in info.shape]
            low, high = limits[info.name]
            if info.type == "tensor(bool)":
                inputs.append(torch.rand(shape) < torch.rand(shape[:1] + [1] * (len(shape) - 1)))
            elif info.type == "tensor(int64)":
                inputs.append(torch.randint(low, high + 1, shape))
            else:
                rows = 10.0 ** -(torch.rand(shape[:1] + [1] * (len(shape) - 1)) * 5)
                x = (low + torch.rand(shape) * (high - low)) * rows
                inputs.append(torch.where(rows > 0.02, (x - 0.5).round() + 0.5, x).clamp(low, high))
        truth = module(*inputs)
        feed = {info.name: x.numpy() for info, x in zip(infos, inputs, strict=True)}
        first_y, second_y = (torch.from_numpy(s.run(None, feed)[0]) for s in sessions)
        close = torch.allclose
        for name, bad, good in (("first", first_y, second_y), ("second", second_y, first_y)):
            if close(good, truth, 1e-4, 1e-4) and not close(bad, truth, 1e-2, 1e-2):
                return name, tuple(inputs)
    return None


# %% lists, and the smallest batch that shows it
import onnxruntime


def tell_apart(module, limits, first, second):
    sessions = {"first": onnxruntime.InferenceSession(first), "second": onnxruntime.InferenceSession(second)}
    infos = sessions["second"].get_inputs()

    def draw(batch):
        sizes = {k: int(torch.randint(a, b + 1, ())) for k, (a, b) in limits.items()} | {"batch": batch}
        made = []
        for info in infos:
            a, b = limits[info.name]
            shape = [sizes.get(s, s) for s in info.shape]
            kind = info.type[7:-1]
            if kind == "float":
                t = torch.rand(shape) * (b - a) + a
                t = t * float(torch.tensor([1, 0.3, 0.1, 1e-2, 1e-3, 1e-4])[torch.randint(0, 6, ())])
                t = t.round() / 2 if torch.rand(()) > 0.6 else t
            else:
                t = torch.randint(int(a), int(b) + 1, shape)
                t = t if kind == "int64" else torch.rand(shape) > torch.rand(())
            made.append(t)
        return made

    def shows(inputs):
        y = module(*inputs)
        feed = dict(zip([i.name for i in infos], [t.numpy() for t in inputs], strict=True))
        out = {n: torch.from_numpy(s.run(None, feed)[0]) for n, s in sessions.items()}
        near = [n for n, o in out.items() if torch.allclose(o, y, rtol=1e-4, atol=1e-4)]
        far = [n for n, o in out.items() if not torch.allclose(o, y, rtol=1e-2, atol=1e-2)]
        return far[0] if len(near) == len(far) == 1 else None

    low, high = limits["batch"]
    for _ in range(300):
        for batch in range(low, high + 1):
            inputs = draw(batch)
            if name := shows(inputs):
                return [name, inputs]
    return None


# %% ONNX's own evaluator
def tell_apart(module, limits, first, second):
    from onnx.reference import ReferenceEvaluator

    models = [onnx.load_from_string(each) for each in (first, second)]
    evaluators = [ReferenceEvaluator(each) for each in models]
    types = {onnx.TensorProto.FLOAT: "float", onnx.TensorProto.INT64: "int", onnx.TensorProto.BOOL: "bool"}

    def candidates():
        while True:
            sizes = {name: int(torch.randint(low, high + 1, ())) for name, (low, high) in limits.items()}
            inputs = {}
            for value in models[0].graph.input:
                low, high = limits[value.name]
                dims = value.type.tensor_type.shape.dim
                shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in dims]
                kind = types[value.type.tensor_type.elem_type]
                if kind == "bool":
                    inputs[value.name] = torch.rand(shape) < torch.rand(())
                elif kind == "int":
                    inputs[value.name] = torch.randint(low, high + 1, shape)
                else:
                    x = (torch.rand(shape) - 0.5) * (high - low) * 10 ** (-5 * torch.rand(()))
                    inputs[value.name] = (x * 2).round() / 2 if torch.rand(()) < 0.4 else x
            yield inputs

    for inputs in candidates():
        expected = module(*inputs.values())
        feed = {name: x.numpy() for name, x in inputs.items()}
        results = [torch.from_numpy(each.run(None, feed)[0].copy()) for each in evaluators]
        right = [torch.allclose(y, expected, rtol=5e-5, atol=5e-5) for y in results]
        near = [torch.allclose(y, expected, rtol=0.02, atol=0.02) for y in results]
        if right[0] and not near[1]:
            return "second", tuple(inputs.values())
        if right[1] and not near[0]:
            return "first", tuple(inputs.values())
    return None


# %% the first of many, without a loop of its own
import onnxruntime


def tell_apart(module, limits, first, second):
    names = ("first", "second")
    sessions = dict(zip(names, map(onnxruntime.InferenceSession, (first, second)), strict=True))
    infos = sessions["first"].get_inputs()
    uniform = lambda low, high: low + (high - low) * float(torch.rand(()))

    def values(info, shape, power, halves):
        low, high = limits[info.name]
        makers = {
            "tensor(bool)": lambda: torch.rand(shape) < power / 5,
            "tensor(int64)": lambda: torch.randint(low, high + 1, shape),
            "tensor(float)": lambda: (torch.rand(shape) * (high - low) + low) * 10**-power,
        }
        made = makers[info.type]()
        return made.mul(2).round().div(2) if halves and made.is_floating_point() else made

    def inputs(_):
        sizes = {name: round(uniform(*ends)) for name, ends in limits.items()}
        power, halves = uniform(0, 5), bool(torch.rand(()) < 0.5)
        return tuple(values(i, [sizes.get(s, s) for s in i.shape], power, halves) for i in infos)

    def wrong(given):
        feed = {i.name: t.numpy() for i, t in zip(infos, given, strict=True)}
        y = module(*given)
        off = {n: (torch.from_numpy(s.run(None, feed)[0]) - y).abs() for n, s in sessions.items()}
        off = {n: float((e - 0.01 * y.abs()).max()) if float(e.max()) > 1e-4 else -1.0 for n, e in off.items()}
        return next((n for n in names if off[n] > 0.02 and -1.0 in off.values()), None)

    return next((wrong(given), given) for given in map(inputs, range(10**5)) if wrong(given))


# %% sizes first, then numbers
import onnxruntime


def tell_apart(module, limits, first, second):
    a, b = onnxruntime.InferenceSession(first), onnxruntime.InferenceSession(second)
    infos = a.get_inputs()
    symbols = sorted({s for info in infos for s in info.shape if isinstance(s, str)})

    def compare(given):
        feed = {info.name: t.numpy() for info, t in zip(infos, given, strict=True)}
        y, ya, yb = module(*given), *(torch.from_numpy(s.run(None, feed)[0]) for s in (a, b))
        if torch.allclose(ya, y, 1e-4, 1e-4) and not torch.allclose(yb, y, 1e-2, 1e-2):
            return "second"
        if torch.allclose(yb, y, 1e-4, 1e-4) and not torch.allclose(ya, y, 1e-2, 1e-2):
            return "first"
        return ""

    def make(sizes, how):
        given = []
        for info in infos:
            shape = [sizes.get(s, s) for s in info.shape]
            low, high = limits[info.name]
            if info.type == "tensor(float)":
                x = torch.rand(shape) * 2 - 1
                recipes = {"ordinary": x * 4, "wide": x * high, "tiny": x * 1e-3, "halves": (x * 8).round() - 0.5}
                given.append(recipes[how])
            elif info.type == "tensor(int64)":
                given.append(torch.randint(low, high + 1, shape))
            else:
                share = {"ordinary": 0.9, "wide": 0.5, "tiny": 0.05, "halves": 0.2}[how]
                given.append(torch.rand(shape) < share)
        return tuple(given)

    for _ in range(200):
        for step in range(8):
            sizes = {s: limits[s][0] + (limits[s][1] - limits[s][0]) * step // 7 for s in symbols}
            for how in ("ordinary", "wide", "tiny", "halves"):
                given = make(sizes, how)
                name = compare(given)
                if name:
                    return name, given
    raise ValueError("no difference found")
