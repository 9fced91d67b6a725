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
    values = numbers[0], numbers[2] - numbers[0], eager.launches, ratio, saved
    counters = dict(zip(("C1", "C2", "C3", "C4", "C5"), values, strict=True))
    return {"environment": environment().to_json(), "counters": counters}
