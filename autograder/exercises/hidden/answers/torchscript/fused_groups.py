def fused_groups(data: dict) -> list:
    """Find every fusion group; about 12 lines."""
    found = []

    def search(holder):
        for node in holder.nodes():
            inside = node.g("Subgraph") if "Subgraph" in node.attributeNames() else None
            if node.kind() in ("prim::TensorExprGroup", "prim::oneDNNFusionGroup"):
                operators = [n.kind() for n in inside.nodes() if n.kind() != "prim::Constant"]
                found.append({"kind": node.kind(), "operators": operators})
                continue
            for block in node.blocks():
                search(block)
            if inside is not None:
                search(inside)

    search(graph_of(data))
    return found
