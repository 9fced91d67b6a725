def baseline(question: dict) -> dict:
    """Return the record of a layer: its environment, and its counters C1 to C5; about 12 lines."""
    layer = TransformerLayer(TransformerConfig(**question["config"])).train()
    shape = question["sequence"], question["config"]["hidden_size"]
    inputs = [torch.randn(batch, *shape) for batch in question["batches"]]
    forward = cost(layer, inputs[:1])
    saved = saved_for_backward(layer, inputs[:1]).total_bytes
    torch._dynamo.reset()
    graphs = CompileCounter()
    compiled, numbers = torch.compile(layer, backend=graphs), []
    for batch in inputs:
        compiled(batch)
        numbers.append(graphs.frame_count)
    counters = {"C1": numbers[0], "C2": numbers[-1] - numbers[0], "C3": forward.launches}
    counters |= {"C4": forward.bytes_moved / forward.minimum_bytes, "C5": saved}
    return {"environment": environment().to_json(), "counters": counters}
