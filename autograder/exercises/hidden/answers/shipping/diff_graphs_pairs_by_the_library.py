def first_differences(before, after):
    from course_lib.graph.node_pairs import pair_nodes

    pairs = pair_nodes(before.graph, after.graph)
    taken = set(pairs.values())
    return [n.name for n in before.graph.nodes if n not in pairs], [n.name for n in after.graph.nodes if n not in taken]
