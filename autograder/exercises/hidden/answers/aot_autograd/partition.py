def partition(question: dict) -> list[str]:
    """The names of the rows that forward saves; about 15 lines, most of which build a network."""
    ahead = {row["name"]: row for row in question["rows"] if row["part"] == "forward" and row["tag"] != "input"}
    network = nx.DiGraph()
    for name, row in ahead.items():
        network.add_edge(name, name + "'", capacity=row["bytes"])
        if row["tag"] in ("pointwise", "view"):
            network.add_edge("source", name, capacity=question["price"] * row["flops"])
            network.add_edges_from((arg + "'", name) for arg in row["args"])
        else:
            network.add_edge("source", name)
    for row in question["rows"]:
        if row["part"] == "backward":
            network.add_edges_from((arg + "'", "sink") for arg in row["args"])
    _, (before, after) = nx.minimum_cut(network, "source", "sink")
    return [name for name in ahead if name in before and name + "'" in after]
