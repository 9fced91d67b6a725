# %% by find_nodes
def bound_pass(operators, limit, verbose):
    class Bounds(CustomGraphPass):
        def __call__(self, graph):
            for name in operators:
                target = getattr(torch.ops.aten, name).default
                for node in graph.find_nodes(op="call_function", target=target):
                    with graph.inserting_before(node.next):
                        new = graph.call_function(torch.ops.aten.clamp.default, (node,), {"min": -limit, "max": limit})
                    node.replace_all_uses_with(new, delete_user_cb=lambda user, new=new: user is not new)
                    if verbose:
                        print(node)

        def uuid(self):
            return "|".join(sorted(operators)) + f" within {limit}"

    return Bounds()


# %% a class with fields
class Bounds(CustomGraphPass):
    def __init__(self, names, limit, told):
        self.names, self.limit, self.told = frozenset(names), limit, told

    def bounds(self, node):
        return node.op == "call_function" and node.target._schema.name.split("::")[1] in self.names

    def __call__(self, graph):
        for node in filter(self.bounds, tuple(graph.nodes)):
            with graph.inserting_after(node):
                clamp = graph.create_node(
                    "call_function", torch.ops.aten.clamp.default, (node, -self.limit, self.limit)
                )
            for reader in set(node.users) - {clamp}:
                reader.args = fx.node.map_arg(
                    reader.args, lambda read, old=node, new=clamp: new if read is old else read
                )
            if self.told:
                print(node.name)

    def uuid(self):
        return b" ".join([str(self.limit).encode(), *(name.encode() for name in sorted(self.names))])


def bound_pass(operators, limit, verbose):
    return Bounds(operators, limit, verbose)
