class BoundPass(CustomGraphPass):
    """Put a clamp to [-limit, limit] behind each call of one of the operators; about 15 lines."""

    def __init__(self, operators: list[str], limit: float, verbose: bool = False) -> None:
        self.operators, self.limit, self.verbose = operators, limit, verbose

    def __call__(self, graph: fx.Graph) -> None:
        for node in list(graph.nodes):
            if node.op == "call_function" and node.target.overloadpacket.__name__ in self.operators:
                users = list(node.users)
                with graph.inserting_after(node):
                    bounded = graph.call_function(torch.ops.aten.clamp.default, (node, -self.limit, self.limit))
                for user in users:
                    user.replace_input_with(node, bounded)
                if self.verbose:
                    print("bounded", node.name)

    def uuid(self) -> str:
        return f"BoundPass 1 {sorted(self.operators)} {self.limit!r}"


def describe(options: dict) -> dict:
    """Given: the pass's name, and the calls of a graph after it."""
    graph = fx.Graph()
    value = graph.placeholder("x")
    for step in options["steps"]:
        value = graph.call_function(getattr(torch.ops.aten, step).default, (value,))
    graph.output(value)
    made = BoundPass(options["operators"], options["limit"], options["verbose"])
    made(graph)
    names = [(str(n.target).removeprefix("aten."), n.args[1:]) for n in graph.nodes if n.op == "call_function"]
    return {"uuid": repr(made.uuid()), "graph": [name + (str(args) if args else "") for name, args in names]}
