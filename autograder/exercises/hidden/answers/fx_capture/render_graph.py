def render(module: fx.GraphModule) -> str:
    """Write a graph so that renaming changes nothing; a good answer has about 20 lines."""
    labels, lines = {}, []
    for number, node in enumerate(module.graph.nodes):
        labels[node] = f"%{number}"
        given = [written(argument, labels) for argument in node.args]
        given += [f"{name}={written(node.kwargs[name], labels)}" for name in sorted(node.kwargs)]
        called = f".{node.target}" if node.op == "call_method" else getattr(node.target, "__name__", "")
        line = {"placeholder": "input", "output": f"return {given[0] if given else ''}"}.get(node.op)
        line = line or f"{called}({', '.join(given)})"
        lines.append(line if node.op == "output" else f"%{number} = {line}")
    return "\n".join(lines)


def written(value, labels):
    if isinstance(value, (tuple, list)):
        inside = ", ".join(written(item, labels) for item in value)
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    return labels[value] if isinstance(value, fx.Node) else repr(value)
