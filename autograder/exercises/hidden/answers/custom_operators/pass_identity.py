def bound_pass(operators: list[str], limit: float, verbose: bool):
    """A CustomGraphPass that puts a clamp to [-limit, limit] behind the operators; about 16 lines."""

    class BoundPass(CustomGraphPass):
        def __call__(self, graph):
            for node in list(graph.nodes):
                if node.op != "call_function" or node.target.overloadpacket.__name__ not in operators:
                    continue
                users = list(node.users)
                with graph.inserting_after(node):
                    bounded = graph.call_function(torch.ops.aten.clamp.default, (node, -limit, limit))
                for user in users:
                    user.replace_input_with(node, bounded)
                if verbose:
                    print("bounded", node.name)

        def uuid(self):
            return f"BoundPass 1 {sorted(operators)} {limit!r}"

    return BoundPass()
