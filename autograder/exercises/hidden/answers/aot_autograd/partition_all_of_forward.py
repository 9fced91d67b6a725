def partition(question):
    """All of forward."""
    return [r["name"] for r in question["rows"] if r["part"] == "forward" and r["tag"] != "input"]
