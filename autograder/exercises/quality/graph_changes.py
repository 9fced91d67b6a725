"""Standard controls for answers that return graphs: typical wrong passes, schedules and TorchScript archives."""

from autograder.exercises.quality.tensor_changes import Change, Worth


def _graph(change: str) -> str:
    """Return the body of a pass that applies `change` to the reference's graph; `fused` lists its course operators."""
    return (
        "    result = _right(*args, **kwargs)\n"
        "    result = getattr(result, 'graph_module', result)\n"
        "    graph = result.graph\n"
        "    output = next(n for n in graph.nodes if n.op == 'output')\n"
        "    fused = [n for n in graph.nodes if 'course_lib' in str(n.target)]\n"
        f"    {change}\n"
        "    result.recompile()\n"
        "    return result"
    )


def _appended(call: str) -> str:
    """Return the body of a pass that adds a call after every tensor that the program returns."""
    return _graph(
        "for n in output.all_input_nodes:\n"
        "        with graph.inserting_before(output):\n"
        f"            new = {call}\n"
        "        output.replace_input_with(n, new)"
    )


GRAPH: dict[str, Change] = {
    "unchanged": ("    return args[0]", Worth.NOTHING),
    "torch.compile": ("    import torch\n    return torch.compile(args[0])", Worth.NOTHING),
    "previous graph": ("    _last.append(_right(*args, **kwargs))\n    return _last[-2:][0]", Worth.LESS),
    "input as output": (
        _graph("output.args = (next(n for n in graph.nodes if n.op == 'placeholder'),)"),
        Worth.NOTHING,
    ),
    "NaN": (_appended("graph.call_method('mul', (n, float('nan')))"), Worth.NOTHING),
    "off by one in a hundred": (_appended("graph.call_method('mul', (n, 1.01))"), Worth.NOTHING),
    "swapped operands": (_graph("for n in fused: n.args = (*n.args[1::-1], *n.args[2:])"), Worth.NOTHING),
    "one precision lower": (
        _graph(
            "import torch\n"
            "    for n in fused:\n"
            "        with graph.inserting_after(n):\n"
            "            low = graph.call_method('half', (n,))\n"
            "        with graph.inserting_after(low):\n"
            "            back = graph.call_method('to', (low, torch.float32))\n"
            "        n.replace_all_uses_with(back, delete_user_cb=lambda user: user is not low)"
        ),
        Worth.NOTHING,
    ),
    "fused call beside the program": (
        "    import copy\n"
        "    before = copy.deepcopy(args[0])\n"
        "    fused = [n for n in _right(*args, **kwargs).graph.nodes if 'course_lib' in str(n.target)]\n"
        "    inputs = [n for n in before.graph.nodes if n.op == 'placeholder']\n"
        "    with before.graph.inserting_after(inputs[-1]):\n"
        "        for n in fused:\n"
        "            before.graph.call_function(n.target, (inputs[0],) * len(n.args))\n"
        "    before.recompile()\n"
        "    return before",
        Worth.NOTHING,
    ),
    "written to a copy": (
        "    import copy\n    return _right(copy.deepcopy(args[0]), *args[1:], **kwargs)",
        Worth.FULL,
    ),
}

ARCHIVE: dict[str, Change] = {
    "nothing": ("    return None", Worth.NOTHING),
    "a module that does nothing": ("    import torch\n    return torch.nn.Identity()", Worth.NOTHING),
}

SCHEDULE: dict[str, Change] = {
    "nothing done": ("    return args[0]", Worth.NOTHING),
    "replaced by the identity": ("    import torch\n    return args[0].replace(torch.nn.Identity())", Worth.NOTHING),
    "off by one in a hundred": (
        "    import torch\n"
        "    result = _right(*args, **kwargs)\n"
        "    root = args[0].build()\n"
        "    graphs = {type(part) for part in root.modules() if isinstance(part, torch.fx.GraphModule)}\n"
        "    for cls in {type(root), *graphs}:\n"
        "        def off(self, *inputs, _forward=cls.forward):\n"
        "            return _forward(self, *inputs) * 1.01\n"
        "        cls.forward = off\n"
        "    return result",
        Worth.NOTHING,
    ),
    "weights set to zero": (
        "    result = _right(*args, **kwargs)\n"
        "    for parameter in args[0].build().parameters():\n"
        "        parameter.detach().zero_()\n"
        "    return result",
        Worth.NOTHING,
    ),
    # a copy of a parameter is the same parameter, if its values are
    "copied parameters": (
        "    import torch\n"
        "    result = _right(*args, **kwargs)\n"
        "    for part in args[0].build().modules():\n"
        "        for name, value in list(part._parameters.items()):\n"
        "            if value is not None:\n"
        "                part._parameters[name] = torch.nn.Parameter(value.detach().clone())\n"
        "    return result",
        Worth.FULL,
    ),
}
