"""Standard controls of schedules: what the reference's schedule builds, spoilt in ways that people try."""

from __future__ import annotations

BESIDE = {
    "nothing done": "    return args[0]",
    "replaced by the identity": ("    import torch\n    return args[0].replace(torch.nn.Identity())"),
    "off by one in a hundred": (
        "    import torch\n"
        "    result = _right(*args, **kwargs)\n"
        "    root = args[0].build()\n"
        "    graphs = {type(part) for part in root.modules() if isinstance(part, torch.fx.GraphModule)}\n"
        "    for cls in {type(root), *graphs}:\n"
        "        def off(self, *inputs, _forward=cls.forward):\n"
        "            return _forward(self, *inputs) * 1.01\n"
        "        cls.forward = off\n"
        "    return result"
    ),
}
"""Bodies that earn nothing."""

SAME = {
    "copied parameters": (
        "    import torch\n"
        "    result = _right(*args, **kwargs)\n"
        "    for part in args[0].build().modules():\n"
        "        for name, value in list(part._parameters.items()):\n"
        "            if value is not None:\n"
        "                part._parameters[name] = torch.nn.Parameter(value.detach().clone())\n"
        "    return result"
    ),
}
"""Bodies that change nothing: the host puts values of its own under the names."""
