def annotate_costs(module: fx.GraphModule, *inputs: torch.Tensor) -> dict:
    """Count FLOPs, bytes and peak memory; a good answer has about 30 lines."""
    values, nodes = run_all(module, inputs), list(module.graph.nodes)
    flops, moved, born, last = {}, {}, {}, {}
    for number, node in enumerate(nodes):
        works = node.op.startswith("call") and node.target not in VIEWS
        flops[node.name] = 0
        if node.target is torch.matmul:
            flops[node.name] = 2 * values[node].numel() * values[node.args[0]].shape[-1]
        moved[node.name] = sum(values[n].nbytes for n in (node, *node.all_input_nodes)) if works else 0
        if node.op != "output" and node.target not in VIEWS:
            born[node] = -1 if node.op == "placeholder" else number
        for read in (*node.all_input_nodes, *([node] if node.op != "output" else [])):
            last[base(read)] = number
    alive = [sum(values[n].nbytes for n in born if born[n] <= i <= last[n]) for i in range(len(nodes))]
    return {"flops": flops, "bytes": moved, "peak_bytes": max(alive)}


VIEWS = (torch.transpose, torch.chunk, operator.getitem)


def base(node):
    return base(node.all_input_nodes[0]) if node.target in VIEWS else node


def run_all(module, inputs):
    class Keeping(fx.Interpreter):
        def run_node(self, node):
            values[node] = super().run_node(node)
            return values[node]

    values = {}
    Keeping(module).run(*inputs)
    return values
