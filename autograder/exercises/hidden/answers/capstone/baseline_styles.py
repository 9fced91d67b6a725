# %% by hooks of one's own
import os
import platform


def baseline(question):
    config = TransformerConfig(**question["config"])
    layer = TransformerLayer(config)
    given = [torch.ones(n, question["sequence"], config.hidden_size) for n in question["batches"]]
    eager = cost(layer, (given[0],))
    kept = saved_for_backward(layer, (given[0],))
    torch._dynamo.reset()
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    compiled = torch.compile(layer.forward, backend=backend)
    compiled(given[0])
    first = len(graphs)
    for batch in given[1:]:
        compiled(batch)
    facts = {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "system": platform.platform(),
    }
    values = first, len(graphs) - first, eager.launches, eager.bytes_moved / eager.minimum_bytes, kept.total_bytes
    return {"environment": facts, "counters": {f"C{i}": value for i, value in enumerate(values, 1)}}


# %% counted in another order, and more than was asked for
def baseline(question):
    torch._dynamo.reset()
    torch.manual_seed(3)
    layer = TransformerLayer(TransformerConfig(**question["config"]))
    counter, seen = CompileCounter(), []
    run = torch.compile(layer, backend=counter)
    for size in question["batches"]:
        run(torch.randn(size, question["sequence"], question["config"]["hidden_size"]))
        seen.append(counter.frame_count)
    x = torch.randn(question["batches"][0], question["sequence"], question["config"]["hidden_size"])
    total, forward = cost(lambda x: layer(x).sum().backward(), (x,)), cost(layer, (x,))
    counters = {
        "C5": float(saved_for_backward(layer, (x,)).total_bytes),
        "C4": forward.bytes_moved / forward.minimum_bytes,
        "C3": forward.launches,
        "C2": seen[-1] - seen[0],
        "C1": seen[0],
        "launches of the step": total.launches,
    }
    return {"counters": counters, "environment": {**environment().to_json(), "course": "capstone"}}


# %% a record that keeps its parts apart
def count_graphs(layer, inputs):
    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(layer, backend=counter, dynamic=None)
    return [(compiled(x), counter.frame_count)[1] for x in inputs]


def baseline(question):
    width = question["config"]["hidden_size"]
    layer = TransformerLayer(TransformerConfig(**question["config"])).train(True)
    inputs = [torch.zeros((size, question["sequence"], width)) for size in question["batches"]]
    numbers, eager = count_graphs(layer, inputs), cost(layer, (inputs[0],))
    ratio = (eager.bytes_read + eager.bytes_written) / eager.minimum_bytes
    saved = saved_for_backward(layer, (inputs[0],)).total_bytes
    values = numbers[0], numbers[-1] - numbers[0], eager.launches, ratio, saved
    counters = dict(zip(("C1", "C2", "C3", "C4", "C5"), values, strict=True))
    return {"environment": environment().to_json(), "counters": counters}


# %% Dynamo's own statistics
from torch._dynamo.utils import counters as of_dynamo


def baseline(question):
    def graphs():
        return of_dynamo["stats"]["unique_graphs"]

    size, tokens = question["config"]["hidden_size"], question["sequence"]
    layer = TransformerLayer(TransformerConfig(**question["config"])).train()
    torch._dynamo.reset()
    of_dynamo.clear()
    compiled = torch.compile(layer, backend="eager")
    batches = [torch.rand(n, tokens, size) for n in question["batches"]]
    compiled(batches[0])
    at_first = graphs()
    for x in batches[1:]:
        compiled(x)
    eager = cost(layer, batches[:1])
    return {
        "environment": environment().to_json(),
        "counters": {
            "C1": at_first,
            "C2": graphs() - at_first,
            "C3": eager.launches,
            "C4": eager.bytes_moved / eager.minimum_bytes,
            "C5": saved_for_backward(layer, batches[:1]).total_bytes,
        },
    }


# %% a recorder
class Recorder:
    def __init__(self, config, sequence):
        self.layer = TransformerLayer(TransformerConfig(**config)).train()
        self.shape = (sequence, config["hidden_size"])
        self.seen = 0

    def backend(self, gm, example_inputs):
        self.seen += 1
        return gm

    def graphs(self, batches):
        torch.compiler.reset()
        compiled = torch.compile(self.layer, backend=self.backend)
        found = []
        for n in batches:
            compiled(torch.zeros(n, *self.shape))
            found.append(self.seen)
        return found[0], found[-1] - found[0]

    def eager(self, n):
        x = torch.zeros(n, *self.shape)
        counted = cost(self.layer, (x,))
        yield "C3", counted.launches
        yield "C4", counted.bytes_moved / counted.minimum_bytes
        yield "C5", saved_for_backward(self.layer, (x,)).total_bytes


def baseline(question):
    recorder = Recorder(question["config"], question["sequence"])
    first, later = recorder.graphs(question["batches"])
    found = {"C1": first, "C2": later}
    found.update(recorder.eager(question["batches"][0]))
    return dict(environment().to_json(), environment=environment().to_json(), counters=found)


# %% compiled in place
def baseline(question):
    config = TransformerConfig(**question["config"])
    sizes = [(n, question["sequence"], config.hidden_size) for n in question["batches"]]
    eager, x = TransformerLayer(config), torch.randn(sizes[0])
    eager.train()
    forward = cost(eager, [x])
    record = {"C3": int(forward.launches), "C5": int(saved_for_backward(eager, [x]).total_bytes)}
    record["C4"] = float(forward.bytes_moved) / float(forward.minimum_bytes)
    torch._dynamo.reset()
    counter = CompileCounter()
    eager.compile(backend=counter)
    counts = [0]
    for size in sizes:
        eager(torch.randn(size))
        counts += [counter.frame_count]
    record["C1"], record["C2"] = counts[1], counts[-1] - counts[1]
    machine = environment()
    return {"counters": record, "environment": machine.to_json()}


# %% without gradients for the forward pass
def baseline(question):
    torch._dynamo.reset()
    layer = TransformerLayer(TransformerConfig(**question["config"])).train()
    first, *others = (
        torch.full((n, question["sequence"], question["config"]["hidden_size"]), 0.5) for n in question["batches"]
    )
    graphs = CompileCounter()
    compiled = torch.compile(layer, backend=graphs)
    for_saved = saved_for_backward(layer, (first,)).total_bytes
    with torch.no_grad():
        forward = cost(layer, (first,))
    compiled(first)
    c1 = graphs.frame_count
    [compiled(x) for x in others]
    names = ("C1", "C2", "C3", "C4", "C5")
    extra = forward.bytes_moved / forward.minimum_bytes
    numbers = (c1, graphs.frame_count - c1, forward.launches, extra, for_saved)
    return {"environment": environment().to_json(), "counters": dict(zip(names, numbers, strict=True))}
